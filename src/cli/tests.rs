//! The command line as it is declared.

use clap::CommandFactory as _;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

#[test]
fn every_command_is_declared_without_contradiction() {
    Cli::command().debug_assert();
}

#[test]
fn usual_command_lines_are_understood() {
    for line in [
        "dak serve --listen 127.0.0.1:0 --data-dir d --insecure -v --set max_event_bytes=1MiB",
        "dak publish -",
        "dak publish events.jsonl --lines --bus shop",
        "dak publish --type t --source /s --data {} --attribute partitionkey=k",
        "dak receive audit --max 5 --wait 20 --ack --follow",
        "dak apply shop --url http://127.0.0.1:1 --key dak_a_b",
        "dak lint rules schemas --format github",
        "dak match --rules a b --events e.jsonl --raw --count --stats --keep-going",
        "dak match --rules a --rules b --events - --explain",
        "dak explain 7 --rule r --format json",
        "dak unmatched --bus default --limit 3",
        "dak dlq list --target t --reason exhausted --limit 5",
        "dak dlq show 3",
        "dak dlq redrive",
        "dak dlq purge --id 3 --id 4",
        "dak schema register t s.json",
        "dak schema show t 2",
        "dak schema check old.json new.json --level FULL_TRANSITIVE --format json",
        "dak schema check old.json new.json --level forward --dialect confluent",
        "dak keys create --scope publish --scope consume --bus default --name n --data-dir d",
        "dak keys list",
        "dak config --config dak.toml --format json",
        "dak status",
    ] {
        assert!(parse(line).is_ok(), "{line}: {}", parse(line).unwrap_err());
    }
}

#[test]
fn command_lines_that_mean_nothing_are_refused() {
    for line in [
        "dak",
        "dak publish",
        "dak publish file --type t",
        "dak publish file --subject s",
        "dak publish file --source /s",
        "dak publish --lines",
        "dak publish --subject s",
        "dak publish --type t --lines",
        "dak receive audit --wait 21",
        "dak lint",
        "dak match --rules r --events e --count --explain",
        "dak dlq purge",
        "dak schema check old.json",
        "dak schema check old.json new.json --level SIDEWAYS",
        "dak keys create",
        "dak keys create --scope owner",
        "dak serve --set listen",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}
