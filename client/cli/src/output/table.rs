use super::text::or_none;

/// Rows under a head, in columns as wide as their widest cell, two blanks apart.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Table {
        Table { rows: vec![head.into_iter().map(str::to_string).collect()] }
    }

    /// Adds a row; an empty cell is shown as `<none>`.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(or_none).collect());
    }

    /// The table, a line a row, with an end of line after the last.
    pub(crate) fn render(&self) -> String {
        let mut widths = Vec::new();
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                if widths.len() <= column {
                    widths.push(0);
                }
                widths[column] = widths[column].max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            text.push_str(&line(row, &widths));
        }
        text
    }
}

/// Cells padded to their columns, without trailing blanks.
fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (column, cell) in row.iter().enumerate() {
        line.push_str(cell);
        if column + 1 < row.len() {
            line.extend(std::iter::repeat_n(' ', widths[column] - cell.chars().count() + 2));
        }
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

/// Lines of `Key = Value`, with the keys padded to the longest; an empty value is shown as `<none>`.
pub(crate) fn fields<K: AsRef<str>>(entries: &[(K, String)]) -> String {
    let width = entries.iter().map(|(key, _)| key.as_ref().chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (key, value) in entries {
        text.push_str(&format!("{:width$} = {}\n", key.as_ref(), or_none(value.clone())));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["ID", "Type", "Status"]);
        table.row(["web".into(), "service".into(), "running".into()]);
        table.row(["größer".into(), String::new(), "dead".into()]);
        assert_eq!(
            table.render(),
            "ID      Type     Status\nweb     service  running\ngrößer  <none>   dead\n"
        );
    }

    #[test]
    fn keys_are_padded_to_the_longest() {
        let text = fields(&[("ID", "web".to_string()), ("Submit Date", String::new())]);
        assert_eq!(text, "ID          = web\nSubmit Date = <none>\n");
    }
}
