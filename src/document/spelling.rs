//! "Did you mean": the candidate that a misspelled word most likely stands for.

/// Longer words are not compared; no name here is longer, and the comparison is quadratic.
const CHARACTERS_MAX: usize = 128;

/// The candidate nearest to a word, if any is near enough to be worth suggesting: at most one
/// edit for every three characters, where an edit inserts, drops, replaces or swaps neighbours.
/// Case and the choice of `-`, `_` or no separator do not count as edits.
pub fn closest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word = folded(word)?;
    let distances = candidates.into_iter().filter_map(|candidate| {
        let folded = folded(candidate)?;
        let edits_max = (word.len().max(folded.len()) / 3).max(1);
        // Of words this short nearly everything is one edit away.
        let enough = word.len() > 1 && folded.len() > 1;
        let edits = distance(&word, &folded);
        (edits == 0 || enough && edits <= edits_max).then_some((edits, candidate))
    });
    let nearest = distances.min_by_key(|(edits, _)| *edits);
    nearest.map(|(_, candidate)| candidate)
}

fn folded(word: &str) -> Option<Vec<char>> {
    let folded: Vec<char> = word
        .chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .take(CHARACTERS_MAX + 1)
        .collect();
    (folded.len() <= CHARACTERS_MAX).then_some(folded)
}

/// The optimal string alignment distance, row by row.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
