//! Numbers at the edges of bounds and between multiples.

use serde_json::Value;

use super::{Facts, Merged, Types};
use crate::schema::compatibility::decimal::Decimal;

/// Numbers of one type that may meet `merged`, among them those next to every bound named.
pub(super) fn numbers(single: Types, merged: &Merged, refused: &[&Facts]) -> Vec<Value> {
    let bounds = [merged.min, merged.max]
        .into_iter()
        .chain(refused.iter().flat_map(|f| [f.min, f.max]));
    let mut anchors: Vec<Decimal> = bounds.flatten().map(|bound| bound.value).collect();
    anchors.push(Decimal::ZERO);
    anchors.extend(
        refused
            .iter()
            .flat_map(|facts| facts.multiples.iter().copied()),
    );
    let unit = merged.unit(single);
    let mut numbers: Vec<Decimal> = Vec::new();
    for anchor in anchors {
        numbers.push(anchor);
        for step in steps(single, unit) {
            for count in [1, 2, 3] {
                let step = step.times(count);
                numbers.extend(step.and_then(|step| anchor.add(step)));
                numbers.extend(step.and_then(|step| anchor.add(step.negated())));
            }
        }
        if let Some(unit) = unit {
            let floor = anchor
                .divided_floor(unit)
                .and_then(|count| unit.times(count));
            for count in -2..=3 {
                let step = unit.times(count);
                numbers.extend(floor.zip(step).and_then(|(floor, step)| floor.add(step)));
            }
        }
    }
    let values = numbers
        .into_iter()
        .filter_map(|number| spelled(single, number));
    values.collect()
}

/// Distances from a bound: a unit where there is one, else a whole and ever finer parts.
fn steps(single: Types, unit: Option<Decimal>) -> Vec<Decimal> {
    let tenths = ["1", "0.5", "0.1", "0.001"];
    let plain = tenths
        .iter()
        .filter_map(|text| Decimal::of(&text.parse().ok()?));
    let mut steps: Vec<Decimal> = unit.into_iter().chain(plain).collect();
    if single != Types::FRACTION {
        steps.retain(|step| step.is_integer());
    }
    steps
}

/// The number as a value of that type, or none when it is not of it.
fn spelled(single: Types, number: Decimal) -> Option<Value> {
    let value = match single {
        Types::WHOLE if number.is_integer() => {
            serde_json::Number::from_f64(number.to_f64()).map(Value::Number)?
        }
        _ => number.to_value()?,
    };
    (Types::of(&value) == single).then_some(value)
}
