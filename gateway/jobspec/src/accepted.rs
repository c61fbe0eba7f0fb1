//! Every block and key that a job file may hold, for those who explain them.

use crate::decode::{FieldKind, JOB, Schema};
use crate::variables::{VALIDATION, VARIABLE};

/// One name that is accepted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Accepted {
    /// The names of the blocks that it is in, and its own, with dots between them.
    pub path: String,
    /// `block`, or what the value is.
    pub kind: &'static str,
    /// The block is not complete without it.
    pub required: bool,
}

/// All of them, wherever they may stand: what several blocks may hold is named once for each.
pub fn accepted() -> Vec<Accepted> {
    let mut all = Vec::new();
    block("job", &JOB, &mut all);
    let mut own = |path: String, kind| all.push(Accepted { path, kind, required: false });
    for name in ["variable", "variable.validation", "variables", "locals"] {
        own(name.to_string(), "block");
    }
    for (name, kind) in VARIABLE {
        own(format!("variable.{name}"), kind);
    }
    for (name, kind) in VALIDATION {
        own(format!("variable.validation.{name}"), kind);
    }
    all
}

fn block(path: &str, schema: &Schema, all: &mut Vec<Accepted>) {
    all.push(Accepted { path: path.to_string(), kind: "block", required: false });
    for field in schema.fields {
        let path = format!("{path}.{}", field.hcl);
        all.push(Accepted { path, kind: word(field.kind), required: field.required });
    }
    for nested in schema.blocks {
        block(&format!("{path}.{}", nested.hcl), nested.schema, all);
    }
}

fn word(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Text => "text",
        FieldKind::Bool => "bool",
        FieldKind::Int(..) => "number",
        FieldKind::Duration => "duration",
        FieldKind::Texts => "list of texts",
        FieldKind::Ints(..) => "list of numbers",
        FieldKind::TextMap => "map of texts",
        FieldKind::TextsMap => "map of lists",
        FieldKind::Free => "any",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_is_named_by_its_place() {
        let all = accepted();
        let of =
            |path: &str| all.iter().find(|name| name.path == path).map(|name| (name.kind, name.required));
        assert_eq!(of("job.group.task.driver"), Some(("text", true)));
        assert_eq!(of("job.group.network.port.to"), Some(("number", false)));
        assert_eq!(of("job.group.task.resources.device.constraint"), Some(("block", false)));
        assert_eq!(of("variable.default"), Some(("any", false)));
        assert_eq!(of("job.group.nothing"), None);
    }
}
