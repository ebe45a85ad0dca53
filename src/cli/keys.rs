//! `dak keys`: API keys, over the API or straight in the data folder of a server that is not running.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::client::Remote;
use super::output::{self, Format, Table};
use super::{Error, Exit};
use crate::api::auth::{self, Scope};
use crate::clock::{Clock, rfc3339};
use crate::config;
use crate::document::Name;
use crate::store::sqlite::{Options, Sqlite};
use crate::store::{self, Store as _};

/// Flags of `dak keys`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a key and print it. It is shown this once only.
    Create {
        /// What the key may do; may be repeated.
        #[arg(long, value_enum, required = true)]
        scope: Vec<ScopeName>,
        /// The only bus it may touch [default: any].
        #[arg(long)]
        bus: Option<String>,
        /// What the key is called [default: its scope and four digits].
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// List keys, without their secrets.
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Delete a key; a running server refuses it from then on.
    Delete {
        /// What the key is called.
        name: String,
        #[command(flatten)]
        place: Place,
    },
}

/// What a key may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScopeName {
    /// Publish events.
    Publish,
    /// Receive from queues.
    Consume,
    /// Everything.
    Admin,
}

/// Where the keys are.
#[derive(Debug, clap::Args)]
struct Place {
    /// Work on the data folder of a server that is not running, instead of asking a server.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

/// A key to make.
struct Wanted {
    name: Name,
    scopes: Vec<Scope>,
    bus: Option<Name>,
}

pub(super) async fn run(args: Args) -> Result<Exit, Error> {
    match args.command {
        Command::Create {
            scope,
            bus,
            name,
            place,
        } => create(&wanted(&scope, bus, name)?, place).await,
        Command::List { place } => list(place).await,
        Command::Delete { name, place } => delete(&name, place).await,
    }
}

fn wanted(
    scopes: &[ScopeName],
    bus: Option<String>,
    name: Option<String>,
) -> Result<Wanted, Error> {
    let scopes: Vec<Scope> = scopes.iter().map(|scope| scope.scope()).collect();
    let unique = |scope: &Scope, before: &[Scope]| !before.contains(scope);
    let kept = scopes.iter().enumerate();
    let scopes: Vec<Scope> = kept
        .filter(|(at, scope)| unique(scope, &scopes[..*at]))
        .map(|(_, scope)| *scope)
        .collect();
    let name = name.unwrap_or_else(|| {
        let first = scopes.first().map_or("key", |scope| scope.as_str());
        format!("{first}-{:04x}", rand::random::<u16>())
    });
    Ok(Wanted {
        name: checked(name)?,
        scopes,
        bus: bus.map(checked).transpose()?,
    })
}

fn checked(name: String) -> Result<Name, Error> {
    Name::parse(&name).map_err(|source| Error::Name { name, source })
}

async fn create(wanted: &Wanted, place: Place) -> Result<Exit, Error> {
    let scopes: Vec<&str> = wanted.scopes.iter().map(|scope| scope.as_str()).collect();
    let name = wanted.name.as_str();
    let Some(data_dir) = &place.data_dir else {
        let client = place.remote.client()?;
        let bus = wanted.bus.as_ref().map(Name::as_str);
        let ask = json!({ "name": name, "scopes": scopes, "bus": bus });
        let answer = client.post(client.url(&["v1", "keys"], &[]), &ask).await?;
        let text = answer.json()?["key"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        show(&place, wanted, &text)?;
        return Ok(Exit::Clean);
    };
    let bus = wanted.bus.as_ref().map(Name::to_string);
    let (text, key) = auth::mint(name, &wanted.scopes, bus, Clock::system().now());
    let database = Database::open(data_dir).await?;
    let added = database.done(database.store.add_key(key).await).await?;
    if !added {
        output::complain(&format!(
            "refused: there is a key `{name}` already; delete it first"
        ));
        return Ok(Exit::Found);
    }
    show(&place, wanted, &text)?;
    Ok(Exit::Clean)
}

/// Prints a new key: its text alone, so that a script can take it.
fn show(place: &Place, wanted: &Wanted, text: &str) -> Result<(), Error> {
    let scopes: Vec<&str> = wanted.scopes.iter().map(|scope| scope.as_str()).collect();
    let name = wanted.name.as_str();
    match place.format {
        Format::Table => {
            output::print(&format!("{text}\n"))?;
            let scopes = scopes.join(", ");
            output::complain(&format!("key `{name}` ({scopes}); it is not shown again"));
            Ok(())
        }
        Format::Json => {
            let document = json!({ "name": name, "scopes": scopes, "key": text });
            output::print(&format!("{document}\n"))
        }
    }
}

async fn list(place: Place) -> Result<Exit, Error> {
    if let Some(data_dir) = &place.data_dir {
        let database = Database::open(data_dir).await?;
        let keys = database.done(database.store.keys().await).await?;
        let keys: Vec<Value> = keys.iter().map(described).collect();
        let document = json!({ "keys": keys });
        let text = match place.format {
            Format::Table => table(&document),
            Format::Json => format!("{document}\n"),
        };
        output::print(&text)?;
        return Ok(Exit::Clean);
    }
    let client = place.remote.client()?;
    let answer = client.get(client.url(&["v1", "keys"], &[])).await?;
    output::listing(&answer, place.format, table)?;
    Ok(Exit::Clean)
}

fn described(key: &store::Key) -> Value {
    json!({
        "name": key.name,
        "scopes": key.scopes,
        "bus": key.bus,
        "created_at": rfc3339(key.created_at),
    })
}

fn table(document: &Value) -> String {
    let columns = [
        ("NAME", "/name"),
        ("SCOPES", "/scopes"),
        ("BUS", "/bus"),
        ("CREATED_AT", "/created_at"),
    ];
    Table::of(&document["keys"], &columns).to_text()
}

async fn delete(name: &str, place: Place) -> Result<Exit, Error> {
    if let Some(data_dir) = &place.data_dir {
        let database = Database::open(data_dir).await?;
        let removed = database.store.remove_key(name.to_owned()).await;
        if !database.done(removed).await? {
            output::complain(&format!("refused: there is no key `{name}`"));
            return Ok(Exit::Found);
        }
    } else {
        let client = place.remote.client()?;
        client
            .delete(client.url(&["v1", "keys", name], &[]))
            .await?;
    }
    output::print(&format!("deleted key `{name}`\n"))?;
    Ok(Exit::Clean)
}

/// The database of a data folder.
struct Database {
    path: PathBuf,
    store: Sqlite,
}

impl Database {
    async fn open(data_dir: &Path) -> Result<Self, Error> {
        let path = config::database(data_dir);
        std::fs::create_dir_all(data_dir).map_err(|source| Error::Folder {
            path: data_dir.to_owned(),
            source,
        })?;
        match Sqlite::open(&path, Options::default()).await {
            Ok(store) => Ok(Self { path, store }),
            Err(source) => Err(Error::Store { path, source }),
        }
    }

    /// Closes the database and passes on what it said.
    async fn done<T>(&self, said: Result<T, store::Error>) -> Result<T, Error> {
        self.store.close().await;
        said.map_err(|source| Error::Store {
            path: self.path.clone(),
            source,
        })
    }
}

impl ScopeName {
    fn scope(self) -> Scope {
        match self {
            Self::Publish => Scope::Publish,
            Self::Consume => Scope::Consume,
            Self::Admin => Scope::Admin,
        }
    }
}
