//! Which columns of a list fit into a line, and how wide they are.

use ratatui_core::text::Span;

use super::model::Column;

/// Between two columns.
pub(super) const GAP: usize = 2;

/// A column asks for no more than this; the last one gets what is left.
const NATURAL_MAX: usize = 40;

/// No column is made narrower than this.
const SHRUNK_MIN: usize = 4;

/// Columns by their numbers, with their widths, from left to right.
pub(super) fn fit(columns: &[Column], natural: &[usize], width: usize) -> Vec<(usize, usize)> {
    let mut kept: Vec<(usize, usize)> =
        natural.iter().map(|wide| (*wide).min(NATURAL_MAX)).enumerate().collect();
    while total(&kept) > width {
        let rank = |at: &usize| columns[kept[*at].0].rank;
        let Some(least) = (0..kept.len()).rev().max_by_key(rank).filter(|at| rank(at) > 0) else { break };
        kept.remove(least);
    }
    while total(&kept) > width {
        let Some(widest) =
            kept.iter_mut().max_by_key(|(_, wide)| *wide).filter(|(_, wide)| *wide > SHRUNK_MIN)
        else {
            break;
        };
        widest.1 -= 1;
    }
    let left = width.saturating_sub(total(&kept));
    if let Some(last) = kept.last_mut() {
        last.1 += left;
    }
    kept
}

fn total(kept: &[(usize, usize)]) -> usize {
    kept.iter().map(|(_, wide)| wide + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Columns of the screen that the text takes.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// The text in at most so many columns, with a sign where it is cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_string();
    }
    let mut cut = String::new();
    for c in text.chars() {
        cut.push(c);
        if width(&cut) + 1 > most {
            cut.pop();
            break;
        }
    }
    if most > 0 {
        cut.push('…');
    }
    cut
}

/// Lines in at most so many columns.
pub(super) fn wrap(lines: &[String], most: usize) -> Vec<String> {
    let mut wrapped = Vec::new();
    for line in lines {
        let mut part = String::new();
        for c in line.chars() {
            part.push(c);
            if width(&part) > most {
                part.pop();
                wrapped.push(std::mem::replace(&mut part, c.to_string()));
            }
        }
        wrapped.push(part);
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column { title: "ID", rank: 0 },
        Column { title: "Pool", rank: 2 },
        Column { title: "Status", rank: 0 },
        Column { title: "Age", rank: 1 },
    ];

    #[test]
    fn the_columns_that_matter_least_go_first() {
        let natural = [8, 7, 6, 3];
        assert_eq!(fit(COLUMNS, &natural, 40), [(0, 8), (1, 7), (2, 6), (3, 13)], "the last has the rest");
        assert_eq!(fit(COLUMNS, &natural, 24), [(0, 8), (2, 6), (3, 6)]);
        assert_eq!(fit(COLUMNS, &natural, 16), [(0, 8), (2, 6)]);
        assert_eq!(fit(COLUMNS, &natural, 13), [(0, 6), (2, 5)], "those that stay become narrower");
        assert_eq!(fit(COLUMNS, &natural, 3), [(0, 4), (2, 4)], "and are cut by the edge in the end");
    }

    #[test]
    fn text_is_cut_and_wrapped_by_the_columns_that_it_takes() {
        assert_eq!(cut("größer", 6), "größer");
        assert_eq!(cut("größer", 4), "grö…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("x", 0), "");
        assert_eq!(
            wrap(&["abcdef".into(), String::new(), "日本語".into()], 4),
            ["abcd", "ef", "", "日本", "語"]
        );
    }
}
