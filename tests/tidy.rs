//! The rules of the house that a compiler does not know, held by reading the source.
//!
//! Each test names every place that breaks its rule. The tables below are the rules: to change one
//! is a decision, made in a commit of its own that gives the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use dak::api::problem;

/// Modules that everyone may import and that import nobody but each other.
const LEAVES: [&str; 3] = ["clock", "document", "telemetry"];

/// What each module may import beside the leaves, bottom first: the map of `lib.rs`.
const IMPORTS: [(&str, &[&str]); 14] = [
    ("blob", &[]),
    ("event", &[]),
    ("pattern", &["event"]),
    ("schema", &[]),
    ("target", &["event"]),
    ("rule", &["event", "pattern"]),
    ("store", &["event"]),
    (
        "catalog",
        &["event", "pattern", "rule", "schema", "store", "target"],
    ),
    ("delivery", &["blob", "catalog", "event", "store", "target"]),
    (
        "ingest",
        &["blob", "catalog", "event", "pattern", "schema", "store"],
    ),
    (
        "api",
        &[
            "blob", "catalog", "delivery", "event", "ingest", "rule", "schema", "store", "target",
        ],
    ),
    ("config", &["event", "ingest", "target"]),
    (
        "server",
        &[
            "api", "blob", "catalog", "config", "delivery", "ingest", "store", "target",
        ],
    ),
    (
        "cli",
        &[
            "api", "catalog", "config", "event", "pattern", "rule", "schema", "server", "store",
        ],
    ),
];

/// Packages that only some modules may name.
const KEPT_PACKAGES: [(&str, &[&str]); 3] = [
    ("sqlx", &["store"]),
    ("rusqlite", &["store"]),
    ("axum", &["api", "server"]),
];

/// Words of time and environment, and the only files that may say them.
const KEPT_WORDS: [(&str, &[&str]); 3] = [
    ("SystemTime", &["src/clock.rs"]),
    (
        // Each of these measures how long something took or may take, and dates nothing.
        "Instant::now",
        &[
            "src/api/events.rs",
            "src/cli/matching.rs",
            "src/cli/progress.rs",
            "src/schema/compatibility/budget.rs",
            "src/store/sqlite/writer.rs",
            "src/target/webhook.rs",
            "src/telemetry/export.rs",
        ],
    ),
    ("env::var", &["src/cli/settings.rs"]),
];

/// Names of files and folders that gather whatever nobody found a place for.
const DRAWERS: [&str; 12] = [
    "util", "utils", "common", "helper", "helpers", "types", "models", "core", "manager",
    "service", "misc", "mod",
];

/// Files that have such a name because it is their subject.
const NO_DRAWERS: [&str; 1] = [
    // Sets of the types that JSON has.
    "src/schema/compatibility/types.rs",
];

const FILE_LINES_MAX: usize = 500;

/// One file of the repository.
struct File {
    /// From the root of the repository, with slashes.
    path: String,
    text: String,
}

impl File {
    /// The file's module at the top of the crate; `main` for the program.
    fn module(&self) -> &str {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let first = inside.split('/').next().unwrap_or(inside);
        first.strip_suffix(".rs").unwrap_or(first)
    }

    fn is_source(&self) -> bool {
        self.path.starts_with("src/") && self.path.ends_with(".rs")
    }

    /// The whole file is there for tests alone.
    fn is_test(&self) -> bool {
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        self.path.starts_with("tests/") || stem.split('/').any(|part| part == "tests")
    }

    /// Lines without those of the tests at the end, numbered from 1.
    fn lines_without_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let end = lines
            .windows(2)
            .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with('{'))
            .unwrap_or(lines.len());
        (1..).zip(lines.into_iter().take(end))
    }

    /// Those lines as code: comments are left out.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines_without_tests()
            .map(|(number, line)| (number, without_comment(line)))
    }
}

/// Sources that run outside tests.
fn sources() -> Vec<File> {
    let mut files = files();
    files.retain(|file| file.is_source() && !file.is_test());
    files
}

/// Every text file of the repository but what is built or ignored.
fn files() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    walk(root, root, &mut files);
    assert!(files.len() > 50, "the repository is at {}", root.display());
    files
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<File>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for entry in entries {
        let path = relative(root, &entry);
        let is_ours = !matches!(path.as_str(), "target" | ".git" | "dak-data");
        if entry.is_dir() && is_ours {
            walk(root, &entry, files);
        } else if let (true, Ok(text)) = (is_ours, fs::read_to_string(&entry)) {
            files.push(File { path, text });
        }
    }
}

fn relative(root: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(root).expect("inside the repository");
    let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// The line up to its comment. A `//` after a colon is a URL's.
fn without_comment(line: &str) -> &str {
    let comment = line
        .match_indices("//")
        .find(|(at, _)| !line[..*at].ends_with(':'));
    comment.map_or(line, |(at, _)| &line[..at])
}

/// Whether `word` stands in `text` with no letter, digit or underscore beside it.
fn says(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[track_caller]
fn none(broken: &[String], rule: &str) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

/// Modules of the crate that a file names by `crate::…`, with the line of the first mention.
fn imports(file: &File) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let mut code = String::new();
    let mut starts = Vec::new();
    for (number, line) in file.code() {
        starts.push((code.len(), number));
        code.push_str(line);
        code.push('\n');
    }
    let line_at = |at: usize| {
        let next = starts.partition_point(|(start, _)| *start <= at);
        starts[next.saturating_sub(1)].1
    };
    for (at, found_text) in code.match_indices("crate::") {
        let is_part_of_word = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if is_part_of_word {
            continue;
        }
        for name in heads(&code[at + found_text.len()..]) {
            found.entry(name).or_insert_with(|| line_at(at));
        }
    }
    found
}

/// The first names of a path, or of each path in a group of them.
fn heads(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        return vec![head(path)];
    };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut is_start = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_start = true,
            c if is_start && !c.is_whitespace() => {
                names.push(head(&group[at..]));
                is_start = false;
            }
            _ => {}
        }
    }
    names
}

fn head(path: &str) -> String {
    path.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

fn table() -> String {
    let leaves = LEAVES.join(", ");
    let mut text = format!("  {leaves}: open to all, import each other alone\n");
    for (module, allowed) in IMPORTS {
        let allowed = if allowed.is_empty() {
            "the open ones alone"
        } else {
            &*allowed.join(", ")
        };
        let _ = writeln!(text, "  {module}: {allowed}");
    }
    text
}

/// What a module may import.
fn allowed(module: &str) -> Option<&'static [&'static str]> {
    match module {
        "main" => Some(&["cli"]),
        _ if LEAVES.contains(&module) => Some(&[]),
        _ => IMPORTS
            .iter()
            .find(|(name, _)| *name == module)
            .map(|(_, allowed)| *allowed),
    }
}

#[test]
fn imports_point_down_as_the_table_says() {
    let mut broken = Vec::new();
    for file in sources().iter().filter(|file| file.path != "src/lib.rs") {
        let module = file.module();
        let Some(allowed) = allowed(module) else {
            broken.push(format!("{} belongs to no module of the table", file.path));
            continue;
        };
        for (import, line) in imports(file) {
            let is_open = import == module || LEAVES.contains(&import.as_str());
            if !is_open && !allowed.contains(&import.as_str()) {
                broken.push(format!("{}:{line} {module} imports {import}", file.path));
            }
        }
    }
    none(
        &broken,
        &format!("the table of imports\n{}is broken", table()),
    );
}

#[test]
fn no_file_reaches_another_module_by_super() {
    let mut broken = Vec::new();
    for file in sources() {
        let depth = file.path.split('/').count() - 1;
        for (number, line) in file.code() {
            let reach = (1..6)
                .rev()
                .find(|count| line.contains(&"super::".repeat(*count)));
            if reach.is_some_and(|reach| reach >= depth) {
                broken.push(format!("{}:{number} {}", file.path, line.trim()));
            }
        }
    }
    none(&broken, "write `crate::` where the path leaves the module");
}

#[test]
fn the_map_lists_the_modules_of_the_table_bottom_to_top() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"));
    let text = text.expect("src/lib.rs");
    let listed: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.split(';').next())
        .collect();
    let known: BTreeSet<&str> = LEAVES
        .into_iter()
        .chain(IMPORTS.iter().map(|(module, _)| *module))
        .collect();
    let unknown: Vec<String> = listed
        .iter()
        .filter(|module| !known.contains(*module))
        .map(|module| format!("{module} is not in the table"))
        .collect();
    none(&unknown, "lib.rs and the table differ");
    let place = |module: &str| listed.iter().position(|listed| *listed == module);
    for (module, allowed) in IMPORTS {
        for import in allowed {
            let is_below = place(import) < place(module);
            assert!(
                is_below,
                "{module} may import {import}, which stands above it in lib.rs"
            );
        }
    }
}

#[test]
fn packages_stay_in_their_modules() {
    let mut broken = Vec::new();
    for file in sources() {
        for (package, modules) in KEPT_PACKAGES {
            if modules.contains(&file.module()) {
                continue;
            }
            for (number, line) in file.code() {
                if says(line, package) {
                    broken.push(format!("{}:{number} says {package}", file.path));
                }
            }
        }
    }
    none(&broken, "SQL lives in store alone, axum in api and server");
}

#[test]
fn time_and_environment_are_read_in_few_places() {
    let mut broken = Vec::new();
    for file in sources() {
        for (word, files) in KEPT_WORDS {
            if files.contains(&file.path.as_str()) {
                continue;
            }
            for (number, line) in file.code() {
                if line.contains(word) {
                    broken.push(format!("{}:{number} says {word}", file.path));
                }
            }
        }
    }
    none(
        &broken,
        "ask the Clock for the time, the Config for settings",
    );
}

#[test]
fn files_are_short() {
    let mut broken = Vec::new();
    for file in sources() {
        let lines = file.lines_without_tests().count();
        if lines > FILE_LINES_MAX {
            broken.push(format!("{}: {lines} lines", file.path));
        }
    }
    none(
        &broken,
        &format!("files above {FILE_LINES_MAX} lines without their tests"),
    );
}

#[test]
fn every_file_opens_with_its_purpose() {
    let broken: Vec<String> = files()
        .into_iter()
        .filter(|file| file.path.ends_with(".rs"))
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.path)
        .collect();
    none(&broken, "the first line says what the file is for, by //!");
}

#[test]
fn there_are_no_drawers() {
    let broken: Vec<String> = files()
        .into_iter()
        .map(|file| file.path)
        .filter(|path| path.ends_with(".rs") && !NO_DRAWERS.contains(&path.as_str()))
        .filter(|path| {
            let stem = path.strip_suffix(".rs").unwrap_or(path);
            stem.split('/').any(|part| DRAWERS.contains(&part))
        })
        .collect();
    none(&broken, "a module has the name of its subject");
}

#[test]
fn nothing_unfinished_is_left() {
    let marks = [
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("dbg", "!("),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
    ];
    let mut broken = Vec::new();
    for file in files().iter().filter(|file| file.path.ends_with(".rs")) {
        for (number, line) in (1..).zip(file.text.lines()) {
            for mark in marks {
                if says(line, mark.trim_end_matches(['!', '('])) && line.contains(mark) {
                    broken.push(format!("{}:{number} {mark}", file.path));
                }
            }
        }
    }
    none(&broken, "finish it, or open an issue");
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    let mut broken = Vec::new();
    for file in sources() {
        for (number, line) in file.code() {
            if line.contains(".unwrap()") || line.contains(".unwrap_err()") {
                broken.push(format!("{}:{number} {}", file.path, line.trim()));
            }
        }
    }
    none(&broken, "return the error, or `expect` with the invariant");
}

#[test]
fn tests_do_not_sleep_unless_they_say_why() {
    let calls = [concat!("sleep", "("), concat!("sleep", "_until(tokio")];
    let mut broken = Vec::new();
    for file in files().iter().filter(|file| file.path.ends_with(".rs")) {
        let tests_from = if file.is_test() {
            1
        } else {
            file.lines_without_tests().count() + 1
        };
        let mut before = "";
        for (number, line) in (1..).zip(file.text.lines()) {
            let code = without_comment(line);
            let sleeps = calls.iter().any(|call| code.contains(call)) && says(code, "sleep");
            let says_why = line.contains("// ") || before.trim_start().starts_with("// ");
            if number >= tests_from && sleeps && !says_why {
                broken.push(format!("{}:{number} {}", file.path, line.trim()));
            }
            before = line;
        }
    }
    none(
        &broken,
        "wait for a signal, or move the clock; a sleep gives its reason above",
    );
}

#[test]
fn the_repository_knows_nothing_of_the_place_it_was_written_in() {
    let place = concat!("/wo", "rk/");
    let mut broken = Vec::new();
    for file in files() {
        for (number, line) in (1..).zip(file.text.lines()) {
            if line.contains(place) {
                broken.push(format!("{}:{number} {}", file.path, line.trim()));
            }
        }
    }
    none(&broken, "paths of one machine");
}

/// A page of the documentation, `None` while there is none yet.
fn page(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name);
    fs::read_to_string(path).ok()
}

/// Names in code spans that begin the rows of tables, after a heading when one is given.
fn rows<'p>(page: &'p str, heading: &str) -> BTreeSet<&'p str> {
    let (_, section) = page.split_once(heading).unwrap_or_default();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect()
}

#[test]
fn the_page_of_errors_lists_every_kind_of_problem_and_no_other() {
    let Some(page) = page("errors.md") else {
        return;
    };
    let kinds: BTreeSet<&str> = problem::Kind::ALL.iter().map(|kind| kind.slug()).collect();
    let listed = rows(&page, "\n## Kinds\n");
    assert_eq!(listed, kinds, "docs/errors.md and api::problem::Kind");
}

#[test]
fn every_setting_has_its_row() {
    let Some(page) = page("configuration.md") else {
        return;
    };
    let missing: Vec<String> = dak::config::settings()
        .iter()
        .map(|setting| setting.key.to_owned())
        .filter(|key| !rows(&page, "").contains(key.as_str()))
        .collect();
    none(&missing, "settings without a row in docs/configuration.md");
}

/// The words that the parser of operators takes.
fn operators() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/pattern/op.rs");
    let text = fs::read_to_string(path).expect("the operators");
    let (_, parser) = text.split_once("fn parse_expression").expect("the parser");
    let (arms, _) = parser.split_once("_ => ").expect("its last arm");
    let arms = arms.lines().filter_map(|line| {
        let (name, rest) = line.trim().strip_prefix('"')?.split_once('"')?;
        rest.starts_with(" =>").then(|| name.to_owned())
    });
    arms.collect()
}

#[test]
fn every_operator_has_its_place_in_the_language() {
    let Some(page) = page("patterns.md") else {
        return;
    };
    let operators = operators();
    assert!(operators.len() >= 9, "{operators:?}");
    let missing: Vec<String> = operators
        .into_iter()
        .filter(|name| !page.contains(&format!("\"{name}\"")))
        .collect();
    none(&missing, "operators that docs/patterns.md does not show");
}

#[test]
fn every_target_kind_has_its_section() {
    let Some(page) = page("targets.md") else {
        return;
    };
    let missing: Vec<&str> = [dak::target::pull::NAME, dak::target::webhook::NAME]
        .into_iter()
        .filter(|name| !page.contains(&format!("\n### `type: {name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "kinds without a section in docs/targets.md: {missing:?}"
    );
}
