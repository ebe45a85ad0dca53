//! Ranges of numbers: all of a set that hold one number, by a tree over their upper bounds.

use crate::pattern::number::Number;
use crate::pattern::op::{Bound, Range};

/// A set of ranges, each with a list.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// In the order of their lower bounds, those without one first.
    members: Box<[(Range, u32)]>,
    /// For each node of a binary tree over the members, the one below it that reaches highest.
    highest: Box<[u32]>,
}

impl Ranges {
    /// Builds the set.
    pub(crate) fn build(mut members: Vec<(Range, u32)>) -> Self {
        members.sort_by(|(one, _), (other, _)| {
            let key = |range: &Range| range.lower.as_ref().map(|bound| bound.value.clone());
            match (key(one), key(other)) {
                (Some(one), Some(other)) => one.as_number().cmp(&other.as_number()),
                (one, other) => one.is_some().cmp(&other.is_some()),
            }
        });
        let mut ranges = Self {
            highest: vec![0; members.len().next_power_of_two() * 2].into(),
            members: members.into(),
        };
        ranges.fill(1, 0, ranges.members.len());
        ranges
    }

    /// Calls `found` with the list of every range that holds `number`.
    pub(crate) fn each(&self, number: Number<'_>, found: &mut impl FnMut(u32)) {
        let begun = self.members.partition_point(|(range, _)| {
            range
                .lower
                .as_ref()
                .is_none_or(|bound| bound.value.as_number() <= number)
        });
        self.visit(number, (1, 0, self.members.len()), begun, found);
    }

    /// Heap bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.members.len() * size_of::<(Range, u32)>() + self.highest.len() * 4
    }

    fn visit(
        &self,
        number: Number<'_>,
        (node, start, end): (usize, usize, usize),
        begun: usize,
        found: &mut impl FnMut(u32),
    ) {
        if start >= begun.min(end) {
            return;
        }
        let highest = &self.members[self.highest[node] as usize].0;
        if highest
            .upper
            .as_ref()
            .is_some_and(|bound| bound.value.as_number() < number)
        {
            return;
        }
        if end - start == 1 {
            let (range, list) = &self.members[start];
            if range.contains(number) {
                found(*list);
            }
            return;
        }
        let middle = start.midpoint(end);
        self.visit(number, (node * 2, start, middle), begun, found);
        self.visit(number, (node * 2 + 1, middle, end), begun, found);
    }

    fn fill(&mut self, node: usize, start: usize, end: usize) {
        if end - start <= 1 {
            if let Some(highest) = self.highest.get_mut(node) {
                *highest = start as u32;
            }
            return;
        }
        let middle = start.midpoint(end);
        self.fill(node * 2, start, middle);
        self.fill(node * 2 + 1, middle, end);
        let (left, right) = (self.highest[node * 2], self.highest[node * 2 + 1]);
        let upper = |place: u32| self.members[place as usize].0.upper.as_ref();
        let left_is_higher = reaches(upper(left), upper(right));
        self.highest[node] = if left_is_higher { left } else { right };
    }
}

/// True when the first upper bound is at least as high.
fn reaches(one: Option<&Bound>, other: Option<&Bound>) -> bool {
    match (one, other) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(one), Some(other)) => one.value.as_number() >= other.value.as_number(),
    }
}
