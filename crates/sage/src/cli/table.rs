//! Rows as aligned columns, for people.

use super::print;

/// Prints the rows, each column as wide as its widest cell; nothing follows the last one.
pub fn print_table<const N: usize>(rows: &[[String; N]]) {
    print_rows(rows);
}

/// The same where only the data knows how many columns there are.
pub fn print_rows<R: AsRef<[String]>>(rows: &[R]) {
    let mut widths = Vec::new();
    for row in rows {
        let row = row.as_ref();
        widths.resize(widths.len().max(row.len()), 0);
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = cell.chars().count().max(*width));
    }
    for row in rows {
        let cells = row.as_ref().iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        print(format_args!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end()));
    }
}
