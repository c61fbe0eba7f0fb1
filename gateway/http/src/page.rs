//! Parts of long lists: their order, where one page ends, and prefixes of ids.

use std::cmp::Ordering;

use api::ReadOptions;
use base::{Index, Uuid};
use model::JobKey;

use crate::error::Failure;

/// What a list is sorted by and continued from.
pub(crate) trait Token: Ord + Sized {
    fn text(&self) -> String;
    /// `None` if the text was never given out as such a token.
    fn read(text: &str) -> Option<Self>;
}

/// The order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Creation(pub Index, pub Uuid);

/// The order of changes; jobs that changed in the same batch are ordered by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Changed(pub Index, pub JobKey);

/// A list, or a part of one.
#[derive(Debug, PartialEq)]
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    /// The token of the first item that is not in it.
    pub next: Option<String>,
}

impl<T> Page<T> {
    pub(crate) fn whole(items: impl Iterator<Item = T>) -> Page<T> {
        Page { items: items.collect(), next: None }
    }

    /// The items that follow each other, made on the way.
    pub(crate) fn map<U>(self, view: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(view).collect(), next: self.next }
    }
}

/// Sorts rows by their tokens and takes the page that was asked for.
///
/// # Errors
/// 400 for a token that was never given out.
pub(crate) fn page<K: Token, R>(
    rows: impl Iterator<Item = (K, R)>,
    options: &ReadOptions,
) -> Result<Page<R>, Failure> {
    let mut rows = reached(rows, options)?;
    let order = order(options);
    let length = options.per_page.map_or(rows.len(), |length| length as usize);
    if length < rows.len() {
        // The page and the one after it, instead of sorting everything for each page.
        rows.select_nth_unstable_by(length, &order);
        rows.truncate(length + 1);
    }
    rows.sort_unstable_by(order);
    let next = rows.get(length).map(|(key, _)| key.text());
    rows.truncate(length);
    Ok(Page { items: rows.into_iter().map(|(_, row)| row).collect(), next })
}

/// The same of the rows that are meant, which are asked for in their order, and no longer than until the page is full.
///
/// # Errors
/// As for [`page`], and those of `is_meant`.
pub(crate) fn page_where<K: Token, R>(
    rows: impl Iterator<Item = (K, R)>,
    options: &ReadOptions,
    mut is_meant: impl FnMut(&R) -> Result<bool, Failure>,
) -> Result<Page<R>, Failure> {
    let mut rows = reached(rows, options)?;
    rows.sort_unstable_by(order(options));
    let length = options.per_page.map_or(rows.len(), |length| length as usize);
    let mut items = Vec::new();
    for (key, row) in rows {
        if !is_meant(&row)? {
            continue;
        }
        if items.len() == length {
            return Ok(Page { items, next: Some(key.text()) });
        }
        items.push(row);
    }
    Ok(Page { items, next: None })
}

/// The rows from the token on that was given.
fn reached<K: Token, R>(
    rows: impl Iterator<Item = (K, R)>,
    options: &ReadOptions,
) -> Result<Vec<(K, R)>, Failure> {
    let from = match options.next_token.as_str() {
        "" => None,
        text => Some(K::read(text).ok_or_else(|| Failure::invalid("invalid `next_token`"))?),
    };
    let reaches = |key: &K| match &from {
        None => true,
        Some(from) if options.reverse => key <= from,
        Some(from) => key >= from,
    };
    Ok(rows.filter(|(key, _)| reaches(key)).collect())
}

fn order<K: Token, R>(options: &ReadOptions) -> impl Fn(&(K, R), &(K, R)) -> Ordering {
    let reverse = options.reverse;
    move |a, b| if reverse { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) }
}

/// The start of an id in the form it is looked up by: hexadecimal digits, an even number, with dashes where
/// they belong.
///
/// # Errors
/// 400 for anything else.
pub(crate) fn id_prefix(given: &str) -> Result<String, Failure> {
    let digits: String = given.chars().filter(|c| *c != '-').collect();
    let is_start = digits.len().is_multiple_of(2)
        && digits.len() <= 32
        && given.len() <= 36
        && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_start {
        let text =
            format!("invalid `prefix` {given:?}: expected an even number of hexadecimal digits of an id");
        return Err(Failure::invalid(text));
    }
    let mut prefix = String::with_capacity(36);
    for (at, digit) in digits.to_ascii_lowercase().chars().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            prefix.push('-');
        }
        prefix.push(digit);
    }
    Ok(prefix)
}

impl Token for Uuid {
    fn text(&self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Option<Uuid> {
        text.parse().ok()
    }
}

impl Token for String {
    fn text(&self) -> String {
        self.clone()
    }

    fn read(text: &str) -> Option<String> {
        Some(text.to_string())
    }
}

impl Token for Creation {
    fn text(&self) -> String {
        format!("{}.{}", self.0, self.1)
    }

    fn read(text: &str) -> Option<Creation> {
        let (index, id) = text.split_once('.')?;
        Some(Creation(Index(index.parse().ok()?), id.parse().ok()?))
    }
}

impl Token for Changed {
    fn text(&self) -> String {
        format!("{}.{}", self.0, self.1.text())
    }

    /// An index alone sorts before every job that changed at it.
    fn read(text: &str) -> Option<Changed> {
        let (index, key) = text.split_once('.').unwrap_or((text, "."));
        Some(Changed(Index(index.parse().ok()?), JobKey::read(key)?))
    }
}

impl Token for JobKey {
    fn text(&self) -> String {
        format!("{}.{}", self.namespace, self.id)
    }

    /// Namespaces have no dots; ids may.
    fn read(text: &str) -> Option<JobKey> {
        text.split_once('.').map(|(namespace, id)| JobKey::new(namespace, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(per_page: u32, next_token: &str, reverse: bool) -> ReadOptions {
        let pairs = [
            ("per_page", per_page.to_string()),
            ("next_token", next_token.to_string()),
            ("reverse", reverse.to_string()),
        ];
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        api::Params::new(pairs).read_options().unwrap()
    }

    fn keys() -> impl Iterator<Item = (Creation, u64)> {
        // Not in order, with two of the same index.
        [(3, 9), (1, 7), (12, 1), (3, 2), (5, 5)]
            .into_iter()
            .map(|(index, id)| (Creation(Index(index), Uuid::from(u128::from(id))), index * 100 + id))
    }

    #[test]
    fn pages_follow_each_other_without_gap_or_repetition() {
        for reverse in [false, true] {
            let whole = page(keys(), &options(0, "", reverse)).unwrap();
            assert_eq!(whole.next, None);
            for length in 1..=5 {
                let (mut seen, mut token) = (Vec::new(), String::new());
                loop {
                    let part = page(keys(), &options(length, &token, reverse)).unwrap();
                    seen.extend(part.items);
                    let Some(next) = part.next else { break };
                    token = next;
                }
                assert_eq!(seen, whole.items, "pages of {length}");
            }
        }
    }

    #[test]
    fn rows_are_asked_for_in_order_until_the_page_is_full() {
        let odd = |row: &u64| row % 2 == 1;
        for reverse in [false, true] {
            let whole: Vec<u64> = page(keys(), &options(0, "", reverse)).unwrap().items;
            let wanted: Vec<u64> = whole.into_iter().filter(odd).collect();
            for length in 0..=4 {
                let (mut seen, mut token) = (Vec::new(), String::new());
                loop {
                    let part =
                        page_where(keys(), &options(length, &token, reverse), |row| Ok(odd(row))).unwrap();
                    seen.extend(part.items);
                    let Some(next) = part.next else { break };
                    token = next;
                }
                assert_eq!(seen, wanted, "pages of {length}");
            }
        }
        let mut asked = Vec::new();
        let first = page_where(keys(), &options(1, "", false), |row| {
            asked.push(*row);
            Ok(odd(row))
        });
        assert_eq!((first.unwrap().items, asked), (vec![107], vec![107, 302, 309]));
        let refused: Result<Page<u64>, _> =
            page_where(keys(), &options(0, "", false), |_| Err(Failure::invalid("no")));
        assert!(refused.is_err());
    }

    #[test]
    fn indexes_are_compared_as_numbers_and_then_ids() {
        let whole = page(keys(), &options(0, "", false)).unwrap();
        assert_eq!(whole.items, [107, 302, 309, 505, 1201]);
        let reversed = page(keys(), &options(2, "", true)).unwrap();
        assert_eq!((reversed.items, reversed.next.is_some()), (vec![1201, 505], true));
    }

    #[test]
    fn a_token_of_another_list_is_refused() {
        assert!(page(keys(), &options(1, "default.job", false)).is_err());
        assert_eq!(JobKey::read("default.a.b"), Some(JobKey::new("default", "a.b")));
    }

    #[test]
    fn a_prefix_is_an_even_number_of_digits_with_or_without_dashes() {
        assert_eq!(id_prefix("").unwrap(), "");
        assert_eq!(id_prefix("5D16").unwrap(), "5d16");
        assert_eq!(id_prefix("5d16e7fe8a2e").unwrap(), "5d16e7fe-8a2e");
        assert_eq!(id_prefix("5d16e7fe-8a2e").unwrap(), "5d16e7fe-8a2e");
        for wrong in ["5", "5d1", "xy", "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f0100", "é"] {
            assert!(id_prefix(wrong).is_err(), "{wrong}");
        }
    }
}
