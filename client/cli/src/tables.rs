//! A whole state as JSON: of a log, of a snapshot.

use anyhow::bail;
use model::document::Timestamp;
use serde_json::json;
use state::State;

use crate::flags::Flag;
use crate::output::write_out;

pub(crate) const TABLE: Flag<Vec<String>> =
    Flag::values("table", "NAME", "Only this table, like Nodes; may be repeated. Default: all.");

/// Prints one object: where the state stands, then every table that is wanted, or all, a line for each row.
///
/// # Errors
/// A table of that name is not there.
pub(crate) fn print(state: &State, wanted: &[String]) -> anyhow::Result<()> {
    let mut tables = server::tables(state);
    if let Some(unknown) = wanted.iter().find(|name| !tables.iter().any(|(table, _)| table == name)) {
        let names: Vec<&str> = tables.iter().map(|(table, _)| *table).collect();
        bail!("-table {unknown}: expected one of {}", names.join(", "));
    }
    tables.retain(|(table, _)| wanted.is_empty() || wanted.iter().any(|name| name == table));
    let (time, cluster) = (Timestamp::from(state.time).to_string(), state.cluster.to_string());
    write_out(format!(
        "{{\n    \"Index\": {},\n    \"Time\": {},\n    \"Cluster\": {}",
        state.index,
        json!(time),
        json!(cluster)
    ));
    for (table, rows) in tables {
        write_out(format!(",\n    \"{table}\": ["));
        let mut separator = "\n";
        for row in rows {
            write_out(format!("{separator}        {row}"));
            separator = ",\n";
        }
        write_out(if separator == "\n" { "]" } else { "\n    ]" });
    }
    write_out("\n}\n");
    Ok(())
}
