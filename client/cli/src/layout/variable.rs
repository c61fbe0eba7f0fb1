//! Variables and their versions.

use api::{Variable, VariableMetadata, VariableVersion};

use super::cell;
use crate::output::{OutputStyle, Table, fields};

/// The list of variables.
pub(crate) fn table(style: &OutputStyle, variables: &[VariableMetadata]) -> String {
    let mut table = Table::new(["Namespace", "Path", "Last Updated"]);
    for variable in variables {
        let updated = style.time(variable.modify_time);
        table.row([variable.namespace.clone(), variable.path.clone(), updated]);
    }
    table.render()
}

/// One variable with its items.
pub(crate) fn block(style: &OutputStyle, variable: &Variable) -> String {
    let mut text = fields(&[
        ("Namespace", variable.namespace.clone()),
        ("Path", variable.path.clone()),
        ("Create Time", style.time(variable.create_time)),
        ("Modify Time", style.time(variable.modify_time)),
        ("Check Index", cell(variable.modify_index)),
    ]);
    if let Some(lock) = &variable.lock {
        text.push_str(&fields(&[
            ("Lock ID", lock.id.clone()),
            ("Lock TTL", cell(lock.ttl.0)),
            ("Lock Delay", cell(lock.lock_delay.0)),
        ]));
    }
    let items: Vec<_> = variable.items.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    text.push_str(&style.section("Items", &fields(&items)));
    text
}

/// One variable as `var put` reads it again.
pub(crate) fn hcl(variable: &Variable) -> String {
    let Variable { namespace, path, create_index, modify_index, create_time, modify_time, .. } = variable;
    let mut text = format!(
        "namespace    = {}\npath         = {}\ncreate_index = {create_index}\nmodify_index = {modify_index}\n\
         create_time  = {create_time}\nmodify_time  = {modify_time}\n\nitems = {{\n",
        quoted(namespace),
        quoted(path)
    );
    for (key, value) in variable.items.iter() {
        text.push_str(&format!("  {} = {}\n", quoted(key), quoted(value)));
    }
    text.push_str("}\n");
    text
}

/// The versions of one variable.
pub(crate) fn versions(style: &OutputStyle, versions: &[VariableVersion]) -> String {
    let mut table = Table::new(["Version", "Modify Index", "Modify Time", "Author", "Accessor ID"]);
    for version in versions {
        let accessor = &version.accessor_id;
        table.row([
            cell(version.version),
            cell(version.modify_index),
            style.when(version.modify_time),
            version.author.clone(),
            if accessor.is_empty() { String::new() } else { style.id(accessor) },
        ]);
    }
    table.render()
}

/// Text of HCL. Its dialects double what begins a template, or leave it, but all of them know characters by their numbers.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '$' | '%' if rest.peek() == Some(&'{') => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use jobspec::Source;
    use jobspec::config::Section;
    use model::document::Map;

    use super::*;

    #[test]
    fn what_is_printed_as_hcl_reads_the_same_again() {
        let texts = [
            "plain",
            "a \"quote\"",
            "${not} %{a} template $ {",
            "${\"open",
            "$${twice}",
            "back\\slash",
            "lines\n\r\tand \u{1} ünïcode",
        ];
        let items: Map<String, String> =
            texts.iter().map(|text| (format!("key {text}"), text.to_string())).collect();
        let variable = Variable { path: "a/b".to_string(), items: items.clone(), ..Variable::default() };
        let mut top = Section::parse(&Source::new("a.hcl", hcl(&variable))).unwrap();
        assert_eq!(top.take::<String>("path").unwrap().as_deref(), Some("a/b"));
        assert_eq!(top.take::<Map<String, String>>("items").unwrap(), Some(items));
    }
}
