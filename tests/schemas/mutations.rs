//! Random edits of random schemas: no verdict may be refuted by a brute-force sample of values.
//!
//! The sampler knows nothing of the engine: a fixed set of small values, and random ones shaped
//! after either schema. `DAK_MUTATIONS` sets how many edits are tried.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::{Duration, Instant},
};

use dak::schema::{
    Draft, Options, Schema,
    compatibility::{CheckOptions, Level, Verdict, check},
};
use proptest::{
    prelude::*,
    sample::Index,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Map, Value, json};

/// Edits tried in a normal run.
const EDITS: u32 = 300;

/// Edits tried in the long run.
const EDITS_LONG: u32 = 10_000;

/// Random values looked at for each pair, besides the fixed ones.
const SAMPLES: usize = 250;

/// Most steps to make a refuted edit smaller.
const SHRINKS_MAX: u32 = 400;

const NAMES: [&str; 5] = ["a", "b", "ab", "c", "zz"];
const PATTERNS: [&str; 8] = [
    "^a",
    "b$",
    "^a+$",
    "a*",
    "[ab]",
    "^(a|b)$",
    "^[a-c]{1,2}$",
    "^$",
];

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(&NAMES[..4]).prop_map(str::to_owned)
}

fn pattern() -> impl Strategy<Value = String> {
    prop::sample::select(&PATTERNS[..]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(1.0),
        json!(2.5),
        json!(""),
        json!("a"),
        json!("ab"),
        json!([]),
        json!([1]),
        json!({}),
        json!({"a": 1}),
    ])
}

/// One keyword with a value, given a source of subschemas.
fn keyword(inner: BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    let types = [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ];
    let one_type = prop::sample::select(types.to_vec());
    let some_types = prop::sample::subsequence(types.to_vec(), 2..4);
    let count = 0_u64..4;
    let number = prop::sample::select(vec![
        json!(-1),
        json!(0),
        json!(1),
        json!(1.5),
        json!(2),
        json!(4),
    ]);
    let unit = prop::sample::select(vec![json!(1), json!(2), json!(3), json!(4), json!(0.5)]);
    let list = || prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
    let members =
        || prop::collection::btree_map(name(), inner.clone(), 1..3).prop_map(|map| json!(map));
    let patterned =
        prop::collection::btree_map(pattern(), inner.clone(), 1..3).prop_map(|map| json!(map));
    let names = || prop::collection::btree_set(name(), 1..3).prop_map(|set| json!(set));
    let needs = prop::collection::btree_map(name(), names(), 1..2).prop_map(|map| json!(map));
    let named = |keyword: &'static str, value: BoxedStrategy<Value>| {
        value
            .prop_map(move |value| (keyword.to_owned(), value))
            .boxed()
    };
    let any_of = |keywords: &'static [&'static str], value: BoxedStrategy<Value>| {
        (prop::sample::select(keywords), value)
            .prop_map(|(keyword, value)| (keyword.to_owned(), value))
            .boxed()
    };
    prop_oneof![
        3 => named("type", one_type.prop_map(Value::from).boxed()),
        1 => named("type", some_types.prop_map(Value::from).boxed()),
        1 => named("enum", prop::collection::vec(scalar(), 1..4).prop_map(Value::from).boxed()),
        1 => named("const", scalar().boxed()),
        2 => any_of(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], number.boxed()),
        1 => named("multipleOf", unit.boxed()),
        2 => any_of(&["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
            count.clone().prop_map(Value::from).boxed()),
        1 => named("pattern", pattern().prop_map(Value::from).boxed()),
        1 => named("uniqueItems", any::<bool>().prop_map(Value::from).boxed()),
        2 => named("items", inner.clone()),
        1 => named("prefixItems", list().boxed()),
        1 => named("contains", inner.clone()),
        1 => any_of(&["minContains", "maxContains"], count.prop_map(Value::from).boxed()),
        4 => named("properties", members().boxed()),
        2 => named("required", names().boxed()),
        2 => named("additionalProperties", prop_oneof![Just(json!(false)), inner.clone()].boxed()),
        1 => named("patternProperties", patterned.boxed()),
        1 => named("propertyNames", inner.clone()),
        1 => named("dependentRequired", needs.boxed()),
        1 => named("dependentSchemas", members().boxed()),
        1 => any_of(&["unevaluatedProperties", "unevaluatedItems"],
            prop_oneof![Just(json!(false)), inner.clone()].boxed()),
        3 => any_of(&["allOf", "anyOf", "oneOf"], list().boxed()),
        2 => any_of(&["not", "if", "then", "else"], inner),
    ]
    .boxed()
}

/// A subschema; references go to the root or to either definition.
fn subschema() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        1 => Just(json!(true)),
        1 => Just(json!(false)),
        1 => prop::sample::select(vec!["#", "#/$defs/x", "#/$defs/y"]).prop_map(|to| json!({"$ref": to})),
        4 => prop::sample::select(vec!["integer", "number", "string", "array", "object", "null"])
            .prop_map(|name| json!({"type": name})),
        2 => scalar().prop_map(|value| json!({"const": value})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop::collection::vec(keyword(inner.boxed()), 1..4)
            .prop_map(|keywords| Value::Object(keywords.into_iter().collect()))
    })
    .boxed()
}

fn document() -> impl Strategy<Value = Value> {
    (
        prop::collection::vec(keyword(subschema()), 1..5),
        subschema(),
        subschema(),
    )
        .prop_map(|(keywords, x, y)| {
            let mut members: Map<String, Value> = keywords.into_iter().collect();
            members.insert("$defs".to_owned(), json!({"x": x, "y": y}));
            Value::Object(members)
        })
}

/// A change of a document: at a place, a keyword is set or removed, or a subschema replaced.
#[derive(Debug, Clone)]
enum Edit {
    Set(Index, String, Value),
    Remove(Index, Index),
    Replace(Index, Value),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (any::<Index>(), keyword(subschema())).prop_map(|(at, (name, value))| Edit::Set(at, name, value)),
        4 => (any::<Index>(), any::<Index>()).prop_map(|(at, which)| Edit::Remove(at, which)),
        1 => (any::<Index>(), subschema()).prop_map(|(at, value)| Edit::Replace(at, value)),
    ]
}

/// The pointers of the subschemas of a document, its root first.
fn places(value: &Value, pointer: &str, places: &mut Vec<String>) {
    let Value::Object(members) = value else {
        return;
    };
    places.push(pointer.to_owned());
    for (name, member) in members {
        let pointer = format!("{pointer}/{name}");
        match (name.as_str(), member) {
            ("enum" | "const" | "type" | "required" | "dependentRequired" | "$ref", _) => {}
            (
                "properties" | "patternProperties" | "dependentSchemas" | "$defs",
                Value::Object(map),
            ) => {
                for (name, member) in map {
                    self::places(member, &format!("{pointer}/{name}"), places);
                }
            }
            (_, Value::Array(list)) => {
                for (index, member) in list.iter().enumerate() {
                    self::places(member, &format!("{pointer}/{index}"), places);
                }
            }
            (_, member) => self::places(member, &pointer, places),
        }
    }
}

fn apply(document: &Value, edit: &Edit) -> Value {
    let mut document = document.clone();
    let mut all = Vec::new();
    places(&document, "", &mut all);
    let place = |at: &Index| all[at.index(all.len())].clone();
    match edit {
        Edit::Set(at, name, value) => {
            if let Some(Value::Object(members)) = document.pointer_mut(&place(at)) {
                members.insert(name.clone(), value.clone());
            }
        }
        Edit::Remove(at, which) => {
            if let Some(Value::Object(members)) = document.pointer_mut(&place(at)) {
                let names: Vec<String> = members
                    .keys()
                    .filter(|name| *name != "$defs")
                    .cloned()
                    .collect();
                if !names.is_empty() {
                    members.remove(&names[which.index(names.len())]);
                }
            }
        }
        Edit::Replace(at, value) => {
            let place = place(at);
            if !place.is_empty()
                && let Some(part) = document.pointer_mut(&place)
            {
                *part = value.clone();
            }
        }
    }
    document
}

/// Chance for the sampler, from the test's own seed.
struct Chance(TestRng);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        (self.0.next_u64() % count.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

fn scalars() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(4),
        json!(5),
        json!(-1),
        json!(-2),
        json!(1.0),
        json!(2.0),
        json!(0.5),
        json!(1.5),
        json!(2.5),
        json!(""),
        json!("a"),
        json!("b"),
        json!("ab"),
        json!("aa"),
        json!("ba"),
        json!("abc"),
        json!("x"),
        json!("abcd"),
    ]
}

/// A random value, shaped after `schema` more often than not.
fn sample(schema: &Value, root: &Value, chance: &mut Chance, depth: usize) -> Value {
    if depth > 5 || chance.below(8) == 0 {
        return chance.pick(&scalars()).clone();
    }
    if let Some(to) = schema["$ref"].as_str()
        && chance.below(4) > 0
    {
        return sample(
            root.pointer(&to[1..]).unwrap_or(root),
            root,
            chance,
            depth + 1,
        );
    }
    if let Some(value) = schema.get("const")
        && chance.below(3) > 0
    {
        return value.clone();
    }
    if let Some(values) = schema["enum"].as_array()
        && chance.below(3) > 0
    {
        return chance.pick(values).clone();
    }
    for union in ["allOf", "anyOf", "oneOf"] {
        if let Some(branches) = schema[union].as_array()
            && chance.below(2) == 0
        {
            let branch = chance.pick(branches).clone();
            return sample(&branch, root, chance, depth + 1);
        }
    }
    let types = [
        "null", "boolean", "integer", "number", "string", "array", "object", "object",
    ];
    let kind = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => chance.pick(names).as_str().unwrap_or("null").to_owned(),
        _ => (*chance.pick(&types)).to_owned(),
    };
    match kind.as_str() {
        "object" => sample_object(schema, root, chance, depth),
        "array" => {
            let count = chance.below(4);
            let item = |index: usize, chance: &mut Chance| {
                let place = schema["prefixItems"].get(index).unwrap_or(&schema["items"]);
                sample(place, root, chance, depth + 1)
            };
            (0..count).map(|index| item(index, chance)).collect()
        }
        name => {
            let fitting: Vec<Value> = scalars()
                .into_iter()
                .filter(|value| match name {
                    "null" => value.is_null(),
                    "boolean" => value.is_boolean(),
                    "string" => value.is_string(),
                    _ => value.is_number(),
                })
                .collect();
            chance.pick(&fitting).clone()
        }
    }
}

fn sample_object(schema: &Value, root: &Value, chance: &mut Chance, depth: usize) -> Value {
    let mut members = Map::new();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> = required
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    for _ in 0..chance.below(3) {
        names.push((*chance.pick(&NAMES)).to_owned());
    }
    for name in names {
        let declared = schema["properties"]
            .get(&name)
            .unwrap_or(&schema["additionalProperties"]);
        members.insert(name, sample(declared, root, chance, depth + 1));
    }
    Value::Object(members)
}

/// Looks for a value that `giving` takes and `accepting` refuses.
fn refute(giving: &Schema, accepting: &Schema, chance: &mut Chance) -> Option<Value> {
    let mut values = scalars();
    values.extend(scalars().into_iter().map(|value| json!([value])));
    values.extend(scalars().into_iter().map(|value| json!({"a": value})));
    values.extend([
        json!([]),
        json!({}),
        json!([1, 1]),
        json!({"a": 1, "b": 1}),
        json!({"zz": 1}),
    ]);
    for index in 0..SAMPLES {
        let shape = if index % 2 == 0 { giving } else { accepting };
        values.push(sample(shape.document(), shape.document(), chance, 0));
    }
    values
        .into_iter()
        .find(|value| giving.is_valid(value) && !accepting.is_valid(value))
}

fn run(edits: u32) {
    let config = Config {
        cases: edits,
        failure_persistence: None,
        max_shrink_iters: SHRINKS_MAX,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let counts: RefCell<BTreeMap<String, usize>> = RefCell::default();
    let slowest = Cell::new(Duration::ZERO);
    let drafts = prop::sample::select(vec![
        Draft::Draft202012,
        Draft::Draft202012,
        Draft::Draft201909,
        Draft::Draft7,
        Draft::Draft4,
    ]);
    let case = (
        document(),
        prop::collection::vec(edit(), 1..3),
        drafts,
        any::<[u8; 32]>(),
    );
    let outcome = runner.run(&case, |(old, edits, draft, seed)| {
        let new = edits
            .iter()
            .fold(old.clone(), |document, edit| apply(&document, edit));
        let schema = Options {
            draft,
            ..Options::default()
        };
        let compile = |document: &Value| Schema::compile(&document.to_string(), &schema);
        let (Ok(old), Ok(new)) = (compile(&old), compile(&new)) else {
            *counts.borrow_mut().entry("refused".to_owned()).or_default() += 1;
            return Ok(());
        };
        let options = CheckOptions {
            schema,
            ..CheckOptions::default()
        };
        let mut chance = Chance(TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
        for (level, giving, accepting) in
            [(Level::Backward, &old, &new), (Level::Forward, &new, &old)]
        {
            let start = Instant::now();
            let report = check(old.text(), new.text(), level, &options);
            slowest.set(slowest.get().max(start.elapsed()));
            let found = refute(giving, accepting, &mut chance);
            let key = match (report.verdict, &found) {
                (Verdict::Compatible, Some(value)) => {
                    return Err(TestCaseError::fail(format!(
                        "{level:?} {draft:?} is refuted by {value}"
                    )));
                }
                (verdict, found) => {
                    let is_found = if found.is_some() {
                        "sampled"
                    } else {
                        "unsampled"
                    };
                    format!("{verdict:?}, {is_found}")
                }
            };
            for difference in &report.differences {
                if let Some(value) = &difference.witness {
                    prop_assert!(
                        giving.is_valid(value) && !accepting.is_valid(value),
                        "{value} proves nothing"
                    );
                }
            }
            *counts.borrow_mut().entry(key).or_default() += 1;
        }
        Ok(())
    });
    println!(
        "{edits} edits, two directions each: {:?}; slowest check {:?}",
        counts.into_inner(),
        slowest.get()
    );
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

#[test]
fn no_compatible_edit_is_refuted_by_a_sample() {
    let edits = std::env::var("DAK_MUTATIONS")
        .ok()
        .and_then(|count| count.parse().ok());
    run(edits.unwrap_or(EDITS));
}

#[test]
#[ignore = "ten thousand edits take minutes"]
fn no_compatible_edit_of_ten_thousand_is_refuted_by_a_sample() {
    run(EDITS_LONG);
}
