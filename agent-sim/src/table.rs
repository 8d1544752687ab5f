//! Plain-text tables.

/// Rows of cells, the first column to the left and the others to the right of their columns.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            if column == 0 {
                line += &format!("  {cell}{pad}");
            } else {
                line += &format!("   {pad}{cell}");
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Three significant digits, short.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if (0.01..10.0).contains(&v) => format!("{value:.3}"),
        v if (10.0..1e4).contains(&v) => format!("{value:.1}"),
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 2.9e-4, 0.39, 123.4, 1.5e7].map(number);
        assert_eq!(shown, ["0", "2.90e-4", "0.390", "123.4", "1.50e7"]);
    }

    #[test]
    fn columns_line_up() {
        let cells = |row: [&str; 2]| row.map(String::from).to_vec();
        let text = table(&[cells(["a", "10"]), cells(["longer", "1"])]);
        assert_eq!(text, "  a        10\n  longer    1\n");
    }
}
