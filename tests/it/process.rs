//! The real program in a process of its own: started, asked, ended, killed.

use std::io::{BufRead as _, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use tokio::sync::watch;

use crate::support::{Http, PATIENCE};

/// How a server is started; it may be started again on the same port and data.
#[derive(Debug, Clone)]
pub struct Program {
    pub address: SocketAddr,
    data_dir: PathBuf,
    settings: Vec<String>,
}

/// A running server.
pub struct Process {
    pub address: SocketAddr,
    pub http: Http,
    child: Child,
    log: watch::Receiver<Vec<String>>,
}

impl Program {
    /// `dak serve` on a free port.
    pub fn new(data_dir: &Path, settings: &[&str]) -> Self {
        // The port is free again when the listener is dropped, and nobody else is given it so soon.
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        Self {
            address: listener.local_addr().expect("an address"),
            data_dir: data_dir.to_owned(),
            settings: settings
                .iter()
                .map(|setting| (*setting).to_owned())
                .collect(),
        }
    }

    /// Starts it and waits until it listens.
    pub async fn start(&self) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dak"));
        command
            .arg("serve")
            .arg("--listen")
            .arg(self.address.to_string());
        command.arg("--data-dir").arg(&self.data_dir);
        for setting in &self.settings {
            command.arg("--set").arg(setting);
        }
        command.current_dir(&self.data_dir);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (keep, log) = watch::channel(Vec::new());
        let keep = Arc::new(keep);
        follow(child.stdout.take().expect("piped"), &keep);
        follow(child.stderr.take().expect("piped"), &keep);
        drop(keep);
        let process = Process {
            address: self.address,
            http: Http::to(self.address),
            child,
            log,
        };
        process.says("dak is ready").await;
        process
    }
}

/// Keeps what the program says.
fn follow(output: impl Read + Send + 'static, keep: &Arc<watch::Sender<Vec<String>>>) {
    let keep = Arc::clone(keep);
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            keep.send_modify(|log| log.push(line));
        }
    });
}

impl Process {
    /// Waits until it says something.
    pub async fn says(&self, text: &str) {
        let mut log = self.log.clone();
        let says = |log: &Vec<String>| log.iter().any(|line| line.contains(text));
        let said = tokio::time::timeout(PATIENCE, log.wait_for(says)).await;
        let is_said = matches!(said, Ok(Ok(_)));
        assert!(is_said, "it does not say `{text}`:\n{}", self.log());
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        self.log.borrow().join("\n")
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().expect("it ran");
        self.child.wait().expect("it ended");
    }

    /// Asks it to stop (SIGTERM).
    pub fn terminate(&self) {
        signal(self.child.id(), "TERM");
    }

    /// Waits for it to end by itself.
    pub async fn ended(mut self) -> ExitStatus {
        let id = self.child.id();
        let waiting = tokio::task::spawn_blocking(move || self.child.wait().expect("a status"));
        match tokio::time::timeout(3 * PATIENCE, waiting).await {
            Ok(status) => status.expect("waited"),
            Err(_) => {
                signal(id, "KILL");
                panic!("it did not end in time");
            }
        }
    }

    /// A figure of `/proc/PID/status` in KiB: `VmRSS` is the memory it has, `VmHWM` the most it had.
    pub fn memory_kib(&self, figure: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("Linux");
        let line = status
            .lines()
            .find(|line| line.starts_with(figure))
            .expect("the figure");
        let number: String = line.chars().filter(char::is_ascii_digit).collect();
        number.parse().expect("a number")
    }
}

fn signal(process: u32, name: &str) {
    let command = format!("kill -{name} {process}");
    let told = Command::new("sh").args(["-c", &command]).status();
    assert!(told.is_ok_and(|status| status.success()), "{command}");
}

impl Drop for Process {
    fn drop(&mut self) {
        // A test that failed leaves no server behind; one that ended it before has none to end.
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}
