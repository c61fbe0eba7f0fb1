//! `csvdecode`: a table with a row of names becomes a list of objects.

use csv::ReaderBuilder;

use crate::eval::convert::to_text;
use crate::eval::{RESULT_MAX, Value, ValueError};

pub(super) fn csvdecode(a: &[Value]) -> Result<Value, ValueError> {
    let text = to_text(&a[0])?;
    let mut reader = ReaderBuilder::new().from_reader(text.as_bytes());
    let names = reader.headers().map_err(|why| format!("not a table: {why}"))?.clone();
    if names.is_empty() {
        return Err("the table has no row of names".into());
    }
    let twice =
        names.iter().enumerate().find(|(at, name)| names.iter().skip(at + 1).any(|other| other == *name));
    if let Some((_, name)) = twice {
        return Err(format!("two columns are called \"{name}\"").into());
    }
    // Each row repeats every name.
    let of_names: usize = names.iter().map(|name| name.len() + size_of::<Value>()).sum();
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|why| format!("not a table: {why}"))?;
        if (rows.len() + 1).saturating_mul(of_names) > RESULT_MAX {
            return Err(format!("the result grows beyond {RESULT_MAX} bytes").into());
        }
        let cells =
            names.iter().zip(&row).map(|(name, cell)| (name.to_string(), Value::Text(cell.to_string())));
        rows.push(Value::Object(cells.collect()));
    }
    Ok(Value::List(rows))
}
