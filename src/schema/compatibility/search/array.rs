//! Arrays with one item wrong, too few or too many, twice the same, or lacking what they must hold.

use serde_json::{Value, json};

use super::{Conjunction, Facts, Merged, Search, Way, lengths};

/// Most positions at which an item is made wrong.
const POSITIONS_MAX: usize = 32;

impl Search<'_> {
    pub(super) fn arrays(&mut self, way: &Way, merged: &Merged) -> Vec<Value> {
        let arena = self.arena;
        let refused = way.refused(arena);
        let limits: Vec<_> = refused
            .iter()
            .map(|facts| (facts.items_min, facts.items_max))
            .collect();
        let mut arrays = Vec::new();
        for length in lengths((merged.items_min, merged.items_max), &limits) {
            arrays.extend(self.array(&way.meet, merged, length, None));
        }
        for facts in &refused {
            arrays.extend(self.arrays_with_wrong_item(way, merged, facts));
            if facts.unique && !merged.unique {
                arrays.extend(self.arrays_with_repeats(way, merged));
            }
            for contains in &facts.contains {
                arrays.extend(self.arrays_by_contains(way, merged, contains.node, contains.max));
            }
            if facts.unevaluated_items.is_some() {
                let length = facts.prefix.len() + 1;
                arrays.extend(self.array(&way.meet, merged, length, None));
            }
        }
        arrays
    }

    /// Arrays of `way` with `part` at `index`.
    pub(super) fn arrays_with(&mut self, way: &Way, index: usize, part: &Value) -> Vec<Value> {
        let merged = way.meet.merged(self.arena);
        let least = usize::try_from(merged.items_min)
            .unwrap_or(usize::MAX)
            .min(POSITIONS_MAX * 8);
        let lengths = [index + 1, least.max(index + 1)];
        let fixed = Some((index, part));
        lengths
            .iter()
            .filter_map(|length| self.array(&way.meet, &merged, *length, fixed))
            .collect()
    }

    /// An array of `length` items that meet their positions, with one of them fixed.
    fn array(
        &mut self,
        meet: &Conjunction,
        merged: &Merged,
        length: usize,
        fixed: Option<(usize, &Value)>,
    ) -> Option<Value> {
        let arena = self.arena;
        let mut needed: Vec<Conjunction> = meet
            .facts(arena)
            .flat_map(|facts| &facts.contains)
            .flat_map(|contains| {
                let count = usize::try_from(contains.min)
                    .unwrap_or(usize::MAX)
                    .min(length);
                (0..count).map(|_| Conjunction::of(arena, [contains.node]))
            })
            .collect();
        let mut items: Vec<Value> = Vec::new();
        for index in 0..length {
            if let Some((_, part)) = fixed.filter(|(place, _)| *place == index) {
                items.push(part.clone());
                continue;
            }
            let place = meet.at_index(arena, index);
            let wanted = needed.pop().map(|also| place.with(arena, also.nodes, []));
            let mut choices = wanted.map(|wanted| self.find(&wanted)).unwrap_or_default();
            if choices.is_empty() {
                choices = self.fillers(&place, index);
            }
            let fresh = choices
                .iter()
                .find(|choice| !merged.unique || !items.contains(choice));
            items.push(fresh.or(choices.first())?.clone());
        }
        Some(Value::Array(items))
    }

    /// Values for a position, different ones for different positions where anything goes.
    fn fillers(&mut self, place: &Conjunction, index: usize) -> Vec<Value> {
        if place.nodes.is_empty() {
            return vec![json!(index)];
        }
        let mut found = self.find(place);
        let merged = place.merged(self.arena);
        let more = (0..8).map(|step| json!(index * 8 + step));
        let texts = (0..8).map(|step| json!(format!("i{}", index * 8 + step)));
        if found.len() < 2 || merged.values.is_none() {
            found.extend(
                more.chain(texts)
                    .filter(|value| place.takes(self.arena, value)),
            );
        }
        if let Some(values) = merged.values {
            found.extend(
                values
                    .into_iter()
                    .filter(|value| place.may_take(self.arena, value)),
            );
        }
        found
    }

    fn arrays_with_wrong_item(&mut self, way: &Way, merged: &Merged, facts: &Facts) -> Vec<Value> {
        let arena = self.arena;
        let known = way
            .meet
            .facts(arena)
            .map(|facts| facts.prefix.len())
            .max()
            .unwrap_or(0);
        let count = known.max(facts.prefix.len()) + 1;
        let mut arrays = Vec::new();
        for index in 0..count.min(POSITIONS_MAX) {
            let Some(node) = facts.prefix.get(index).copied().or(facts.items) else {
                continue;
            };
            let wanted = way.meet.at_index(arena, index).with(arena, [], [node]);
            for part in self.find(&wanted) {
                arrays.extend(self.arrays_with(way, index, &part));
            }
        }
        let _ = merged;
        arrays
    }

    fn arrays_with_repeats(&mut self, way: &Way, merged: &Merged) -> Vec<Value> {
        let arena = self.arena;
        let mut arrays = Vec::new();
        let both = way.meet.at_index(arena, 0);
        let second = way.meet.at_index(arena, 1);
        let wanted = both.with(arena, second.nodes, []);
        let Some(twin) = self.first(&wanted) else {
            return arrays;
        };
        let length = usize::try_from(merged.items_min.max(2))
            .unwrap_or(2)
            .min(POSITIONS_MAX * 8);
        if let Some(Value::Array(mut items)) =
            self.array(&way.meet, merged, length, Some((0, &twin)))
        {
            items[1] = twin;
            arrays.push(Value::Array(items));
        }
        arrays
    }

    /// Arrays without an item that matches, and with one more than allowed.
    fn arrays_by_contains(
        &mut self,
        way: &Way,
        merged: &Merged,
        node: super::NodeId,
        max: Option<u64>,
    ) -> Vec<Value> {
        let arena = self.arena;
        let mut arrays = Vec::new();
        let lacking = way.meet.at_index(arena, 0).with(arena, [], [node]);
        let least = usize::try_from(merged.items_min)
            .unwrap_or(usize::MAX)
            .min(POSITIONS_MAX * 8);
        for length in [least, least.max(1)] {
            let mut items = Vec::new();
            for index in 0..length {
                let wanted = way.meet.at_index(arena, index).with(arena, [], [node]);
                let choices = self.find(&wanted);
                let fresh = choices
                    .iter()
                    .find(|choice| !merged.unique || !items.contains(*choice));
                items.extend(fresh.or(choices.first()).cloned());
            }
            arrays.push(Value::Array(items));
        }
        let _ = lacking;
        if let Some(count) = max.and_then(|max| super::length(max.saturating_add(1))) {
            let mut items: Vec<Value> = Vec::new();
            for index in 0..count {
                let wanted = way.meet.at_index(arena, index).with(arena, [node], []);
                let choices = self.fillers(&wanted, index);
                let fresh = choices
                    .iter()
                    .find(|choice| !merged.unique || !items.contains(choice));
                items.extend(fresh.or(choices.first()).cloned());
            }
            arrays.push(Value::Array(items));
        }
        arrays
    }
}
