//! Combinations: their criterion, their size, and which part became which.

use super::{
    Change, Comparison, Criterion, Found, Move, Shape, Subject, add, add_below, is_compatible,
};

impl Comparison<'_> {
    pub(super) fn combinations(
        &mut self,
        original: Shape<'_>,
        update: Shape<'_>,
        found: &mut Vec<Found>,
    ) {
        let (old, new) = (original.parts(), update.parts());
        if original.criterion() != update.criterion() {
            let widens = update.criterion() == Criterion::Any
                || (old.len() == 1 && update.criterion() != Criterion::All)
                || (new.len() == 1 && original.criterion() == Criterion::All)
                || (old.len() == 1 && new.len() == 1);
            let moved = if widens {
                Move::Extended
            } else {
                Move::Changed
            };
            add(found, Change::Keyword(Subject::CombinedType, moved), "");
            if !widens {
                return;
            }
        }
        let is_product = original.criterion() == Criterion::All;
        let subject = if is_product {
            Subject::ProductType
        } else {
            Subject::SumType
        };
        if old.len() < new.len() {
            add(found, Change::Keyword(subject, Move::Extended), "");
        } else if old.len() > new.len() {
            add(found, Change::Keyword(subject, Move::Narrowed), "");
        }
        self.match_parts(original, &old, &new, found);
    }

    /// Pairs as many parts as can be paired compatibly; one that is left over is a change.
    fn match_parts(
        &mut self,
        original: Shape<'_>,
        old: &[Shape<'_>],
        new: &[Shape<'_>],
        found: &mut Vec<Found>,
    ) {
        let changes: Vec<Vec<Vec<Found>>> = old
            .iter()
            .map(|one| new.iter().map(|other| self.compare(*one, *other)).collect())
            .collect();
        let fits: Vec<Vec<usize>> = changes
            .iter()
            .map(|row| {
                // Equal parts first, so that they are paired with each other.
                let mut columns: Vec<usize> = (0..row.len())
                    .filter(|column| is_compatible(&row[*column]))
                    .collect();
                columns.sort_by_key(|column| row[*column].len());
                columns
            })
            .collect();
        let mut row_of: Vec<Option<usize>> = vec![None; new.len()];
        for row in 0..old.len() {
            let mut tried = vec![false; new.len()];
            place(row, &fits, &mut tried, &mut row_of);
        }
        let matched = row_of.iter().flatten().count();
        if matched < old.len().min(new.len()) {
            add(found, Change::SubschemasChanged, "");
            return;
        }
        for (column, row) in row_of.iter().enumerate() {
            if let Some(row) = row {
                let path = format!("/{}/{row}", original.parts_name());
                add_below(found, changes[*row][column].clone(), &path);
            }
        }
    }
}

/// Finds a column for `row`, moving earlier rows where needed (augmenting paths).
fn place(
    row: usize,
    fits: &[Vec<usize>],
    tried: &mut [bool],
    row_of: &mut [Option<usize>],
) -> bool {
    for column in &fits[row] {
        if std::mem::replace(&mut tried[*column], true) {
            continue;
        }
        let is_free = match row_of[*column] {
            None => true,
            Some(other) => place(other, fits, tried, row_of),
        };
        if is_free {
            row_of[*column] = Some(row);
            return true;
        }
    }
    false
}
