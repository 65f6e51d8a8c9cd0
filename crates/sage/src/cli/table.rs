//! Rows as aligned columns, for people.

use super::print;

/// Prints the rows, each column as wide as its widest cell; nothing follows the last one.
pub fn print_table<const N: usize>(rows: &[[String; N]]) {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        print(format_args!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end()));
    }
}
