//! Which fact gave each field of a document its value.

use std::collections::BTreeMap;

use api::HistoryLine;
use serde::Serialize;
use serde_json::Value;

use super::difference;

/// A field, its value, and the fact that gave it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Origin {
    pub path: String,
    pub value: Value,
    /// `None`: it was so before the oldest fact that is known, or follows from what happened to other objects.
    pub fact: Option<HistoryLine>,
}

/// Fields with another value than before are of this fact.
pub(crate) fn follow(fields: &mut BTreeMap<String, Origin>, document: &Value, fact: Option<&HistoryLine>) {
    let now = difference::fields(document);
    fields.retain(|path, _| now.contains_key(path));
    for (path, value) in now {
        if fields.get(&path).is_none_or(|origin| origin.value != value) {
            let origin = Origin { path: path.clone(), value, fact: fact.cloned() };
            fields.insert(path, origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_of_the_fact_that_changed_it_last() {
        let mut fields = BTreeMap::new();
        follow(&mut fields, &json!({"A": 1, "B": 1}), None);
        follow(&mut fields, &json!({"A": 2, "B": 1, "C": 1}), Some(&fact(5)));
        follow(&mut fields, &json!({"A": 2, "C": 3}), Some(&fact(7)));
        let of = |path: &str| fields[path].fact.as_ref().map(|fact| fact.index);
        assert_eq!((of("A"), of("C"), fields.contains_key("B")), (Some(5), Some(7), false));
    }

    fn fact(index: u64) -> HistoryLine {
        HistoryLine { index, ..HistoryLine::default() }
    }
}
