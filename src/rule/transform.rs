//! Transforms: values picked out of the event by JSONPath and laid into a template.
//!
//! A template string that is exactly `<name>` becomes the picked value itself; `<name>` inside a
//! longer string becomes its text. A path that picks nothing gives `null` (and an empty text), a
//! path that picks several values a list. Paths are compiled once, when the rule is.

use jsonpath_rust::parser::model::{
    Comparable, Filter, FilterAtom, FnArg, JpQuery, Segment, Selector, Test as PathTest,
    TestFunction,
};
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::{Map, Value};

use crate::document::{Fault, Fields, Node};
use crate::event::{Data, Event};

/// Most paths a transform may have.
pub const PATHS_MAX: usize = 100;

/// A compiled transform.
#[derive(Debug)]
pub struct Transform {
    paths: Vec<(String, JpQuery)>,
    template: Value,
}

/// Why a transform could not be applied to an event.
#[derive(Debug, thiserror::Error)]
pub enum TransformError {
    /// The event's data is not JSON, so paths into it pick nothing.
    #[error("the event's data is not JSON")]
    NotJson,
    /// A path failed on this event.
    #[error("path {name} failed: {reason}")]
    Path { name: String, reason: String },
}

impl Transform {
    /// Reads `paths` and `template`.
    ///
    /// # Errors
    /// Paths that do not parse, functions that do not exist, names the template uses and nobody
    /// picks.
    pub fn parse(node: &Node) -> Result<Self, Vec<Fault>> {
        let mut fields = Fields::new(node, "a transform");
        let mut paths = Vec::new();
        let mut faults = Vec::new();
        for (key, text) in fields.string_map("paths").unwrap_or_default() {
            match compile(text) {
                Ok(query) => paths.push((key.text.clone(), query)),
                Err(message) => {
                    let hint = "RFC 9535, such as $.data.order.id".to_owned();
                    faults.push(Fault::new(key.at, message).with_hint(hint));
                }
            }
        }
        let template = fields.required_node("template");
        if paths.len() > PATHS_MAX {
            fields.fault("paths", format!("more than {PATHS_MAX} paths"), None);
        }
        if let Some(template) = template {
            check_names(template, &paths, &mut faults);
        }
        faults.extend(fields.finish());
        match template {
            Some(template) if faults.is_empty() => Ok(Self {
                paths,
                template: template.to_value(),
            }),
            _ => Err(faults),
        }
    }

    /// The event with the filled template as its JSON data; every other attribute stays.
    ///
    /// # Errors
    /// When the data is not JSON, or a path fails.
    pub fn apply(&self, event: &Event) -> Result<Event, TransformError> {
        let whole = as_json(event)?;
        let mut picked = Map::new();
        for (name, query) in &self.paths {
            picked.insert(name.clone(), pick(name, query, &whole)?);
        }
        let data = fill(&self.template, &picked).to_string();
        let (mut attributes, _) = event.clone().into_parts();
        match attributes
            .iter_mut()
            .find(|attribute| attribute.name == "datacontenttype")
        {
            Some(kind) => kind.value = crate::event::Value::String("application/json".into()),
            None => attributes.push(crate::event::Attribute::text(
                "datacontenttype",
                "application/json",
            )),
        }
        // The data no longer has the shape that the schema named here describes.
        attributes.retain(|attribute| attribute.name != "dataschema");
        Ok(Event::new(attributes, Data::Json(data.into()))
            .expect("the attributes are those of a valid event"))
    }
}

fn compile(text: &str) -> Result<JpQuery, String> {
    let query =
        parse_json_path(text).map_err(|error| format!("`{text}` is no JSONPath: {error}"))?;
    match foreign_function(&query) {
        Some(name) => Err(format!(
            "`{text}` calls `{name}`, which cannot be used here"
        )),
        None => Ok(query),
    }
}

fn as_json(event: &Event) -> Result<Value, TransformError> {
    let mut whole = Map::new();
    for attribute in event.attributes() {
        let value = match &attribute.value {
            crate::event::Value::String(text) => Value::String(text.clone()),
            crate::event::Value::Integer(integer) => Value::from(*integer),
            crate::event::Value::Boolean(boolean) => Value::Bool(*boolean),
        };
        whole.insert(attribute.name.clone(), value);
    }
    let data = match event.data() {
        Data::Absent => None,
        Data::Text(text) => Some(Value::String(String::from_utf8_lossy(text).into_owned())),
        Data::Json(_) | Data::Binary(_) => {
            let json = event.data_json().ok_or(TransformError::NotJson)?;
            Some(serde_json::from_slice(json).map_err(|_| TransformError::NotJson)?)
        }
    };
    if let Some(data) = data {
        whole.insert("data".into(), data);
    }
    Ok(Value::Object(whole))
}

fn pick(name: &str, query: &JpQuery, whole: &Value) -> Result<Value, TransformError> {
    let found = js_path_process(query, whole).map_err(|error| TransformError::Path {
        name: name.to_owned(),
        reason: error.to_string(),
    })?;
    let mut values: Vec<Value> = found.into_iter().map(|found| found.val().clone()).collect();
    Ok(match values.len() {
        0 => Value::Null,
        1 => values.remove(0),
        _ => Value::Array(values),
    })
}

fn fill(template: &Value, picked: &Map<String, Value>) -> Value {
    match template {
        Value::String(text) => fill_text(text, picked),
        Value::Array(items) => items.iter().map(|item| fill(item, picked)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), fill(value, picked)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

fn fill_text(text: &str, picked: &Map<String, Value>) -> Value {
    if let Some(name) = text
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
        && let Some(value) = picked.get(name)
    {
        return value.clone();
    }
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name, after)) = next_name(rest) {
        filled.push_str(before);
        match picked.get(name) {
            Some(Value::String(value)) => filled.push_str(value),
            Some(Value::Null) => {}
            Some(value) => filled.push_str(&value.to_string()),
            None => {
                filled.push('<');
                filled.push_str(name);
                filled.push('>');
            }
        }
        rest = after;
    }
    filled.push_str(rest);
    Value::String(filled)
}

/// Splits off the text before the next `<name>`, the name, and the rest.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('<').map(|at| at + from) {
        let close = text[open..].find('>').map(|at| at + open)?;
        let name = &text[open + 1..close];
        if !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        {
            return Some((&text[..open], name, &text[close + 1..]));
        }
        from = open + 1;
    }
    None
}

fn check_names(template: &Node, paths: &[(String, JpQuery)], faults: &mut Vec<Fault>) {
    if let Some(text) = template.as_str() {
        let mut rest = text;
        while let Some((_, name, after)) = next_name(rest) {
            if !paths.iter().any(|(known, _)| known == name) {
                let message = format!("the template uses <{name}>, which no path picks");
                let known: Vec<&str> = paths.iter().map(|(name, _)| name.as_str()).collect();
                let hint = format!("paths are: {}", known.join(", "));
                faults.push(Fault::new(template.at, message).with_hint(hint));
            }
            rest = after;
        }
    }
    for item in template.as_list().unwrap_or_default() {
        check_names(item, paths, faults);
    }
    for (_, member) in template.as_map().unwrap_or_default() {
        check_names(member, paths, faults);
    }
}

/// A function in the query that the library would silently answer with nothing (an unknown name)
/// or run a regular expression for on every node (`match`, `search`).
fn foreign_function(query: &JpQuery) -> Option<String> {
    query.segments.iter().find_map(in_segment)
}

fn in_segment(segment: &Segment) -> Option<String> {
    match segment {
        Segment::Descendant(inner) => in_segment(inner),
        Segment::Selector(selector) => in_selector(selector),
        Segment::Selectors(selectors) => selectors.iter().find_map(in_selector),
    }
}

fn in_selector(selector: &Selector) -> Option<String> {
    match selector {
        Selector::Filter(filter) => in_filter(filter),
        _ => None,
    }
}

fn in_filter(filter: &Filter) -> Option<String> {
    match filter {
        Filter::Or(parts) | Filter::And(parts) => parts.iter().find_map(in_filter),
        Filter::Atom(atom) => in_atom(atom),
    }
}

fn in_atom(atom: &FilterAtom) -> Option<String> {
    match atom {
        FilterAtom::Filter { expr, .. } => in_filter(expr),
        FilterAtom::Test { expr, .. } => in_test(expr),
        FilterAtom::Comparison(comparison) => {
            let (left, right) = comparison.vals();
            in_comparable(left).or_else(|| in_comparable(right))
        }
    }
}

fn in_comparable(comparable: &Comparable) -> Option<String> {
    match comparable {
        Comparable::Function(function) => in_function(function),
        _ => None,
    }
}

fn in_test(test: &PathTest) -> Option<String> {
    match test {
        PathTest::RelQuery(segments) => segments.iter().find_map(in_segment),
        PathTest::AbsQuery(query) => foreign_function(query),
        PathTest::Function(function) => in_function(function),
    }
}

fn in_function(function: &TestFunction) -> Option<String> {
    match function {
        TestFunction::Custom(name, _) => Some(name.clone()),
        TestFunction::Match(..) => Some("match".into()),
        TestFunction::Search(..) => Some("search".into()),
        TestFunction::Length(argument) => in_argument(argument),
        TestFunction::Count(argument) | TestFunction::Value(argument) => in_argument(argument),
    }
}

fn in_argument(argument: &FnArg) -> Option<String> {
    match argument {
        FnArg::Literal(_) => None,
        FnArg::Test(test) => in_test(test),
        FnArg::Filter(filter) => in_filter(filter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse_yaml;

    fn transform(yaml: &str) -> Result<Transform, Vec<Fault>> {
        Transform::parse(&parse_yaml(yaml).expect("YAML")[0])
    }

    fn order() -> Event {
        Event::new(
            vec![
                crate::event::Attribute::text("specversion", "1.0"),
                crate::event::Attribute::text("id", "1"),
                crate::event::Attribute::text("source", "/shop"),
                crate::event::Attribute::text("type", "order"),
            ],
            Data::Json(bytes::Bytes::from_static(
                br#"{"id":"o-1","amount":50,"items":[{"sku":"a"},{"sku":"b"}]}"#,
            )),
        )
        .expect("an event")
    }

    #[test]
    fn picked_values_are_laid_into_the_template() {
        let transform = transform(
            "paths: {id: $.data.id, amount: $.data.amount, skus: '$.data.items[*].sku', no: $.data.no}\n\
             template: {order: <id>, amount: <amount>, skus: <skus>, gone: <no>, text: 'order <id> over <amount>'}",
        )
        .expect("a transform");
        let changed = transform.apply(&order()).expect("applied");
        assert_eq!(
            serde_json::from_slice::<Value>(changed.data_bytes()).expect("JSON"),
            serde_json::json!({"order": "o-1", "amount": 50, "skus": ["a", "b"], "gone": null,
                "text": "order o-1 over 50"})
        );
        assert_eq!(changed.id(), "1");
    }

    #[test]
    fn names_that_nobody_picks_and_unknown_functions_are_refused() {
        let faults = transform("paths: {a: $.data.a}\ntemplate: {x: <b>}").expect_err("refused");
        assert!(faults[0].message.contains("<b>"), "{faults:?}");
        let faults = transform("paths: {a: '$.data[?lenght(@.x) > 1]'}\ntemplate: <a>")
            .expect_err("refused");
        assert!(faults[0].message.contains("lenght"), "{faults:?}");
    }
}
