//! Tables with aligned columns.

use super::OutputWriter;
use crate::error::CommandResult;

/// A title, and the cell of an item.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// A table that prints rows page by page. A later page may be wider than the first.
pub(crate) struct Table<'a, T> {
    columns: &'a [Column<T>],
    widths: Vec<usize>,
    begun: bool,
}

impl<'a, T> Table<'a, T> {
    pub(crate) fn new(columns: &'a [Column<T>]) -> Self {
        let widths = columns.iter().map(|(title, _)| title.chars().count()).collect();
        Table { columns, widths, begun: false }
    }

    pub(crate) fn rows(&mut self, out: &OutputWriter, items: &[T]) -> CommandResult {
        if items.is_empty() {
            return Ok(());
        }
        self.lines(items, out.colours).iter().try_for_each(|line| out.line(line))
    }

    fn lines(&mut self, items: &[T], colours: bool) -> Vec<String> {
        let row = |item| self.columns.iter().map(|(_, cell)| cell(item)).collect::<Vec<_>>();
        let rows: Vec<Vec<String>> = items.iter().map(row).collect();
        for row in &rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut lines = Vec::new();
        if !self.begun {
            self.begun = true;
            let titles: Vec<String> = self.columns.iter().map(|(title, _)| (*title).to_owned()).collect();
            lines.push(self.line(&titles, |title| if colours { Some(paint(title, 1)) } else { None }));
        }
        lines.extend(rows.iter().map(|row| {
            self.line(row, |cell| colour(cell).filter(|_| colours).map(|code| paint(cell, code)))
        }));
        lines
    }

    fn line(&self, cells: &[String], painted: impl Fn(&str) -> Option<String>) -> String {
        let mut line = String::new();
        for (at, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            line.push_str(&painted(cell).unwrap_or_else(|| cell.clone()));
            if at + 1 < cells.len() {
                // By what is seen: a colour takes no room.
                line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
            }
        }
        line.trim_end().to_owned()
    }
}

/// Green for success, yellow for waiting, red for what needs attention.
fn colour(word: &str) -> Option<u8> {
    match word {
        "delivered" | "closed" | "request" => Some(32),
        "waiting" | "held" | "halfOpen" | "forcedClosed" | "filtered" => Some(33),
        "deadLettered" | "open" | "forcedOpen" | "unrenderable" => Some(31),
        _ => None,
    }
}

fn paint(text: &str, code: u8) -> String {
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

#[cfg(test)]
mod tests {
    use super::super::text::cell;
    use super::*;

    struct Item(&'static str, Option<&'static str>, Option<u64>);

    const COLUMNS: &[Column<Item>] = &[
        ("NAME", |item| cell(item.0)),
        ("CIRCUIT", |item| cell(&item.1.map(str::to_owned))),
        ("LAST", |item| cell(&item.2)),
    ];

    /// HUB-10: columns stand below each other, with colours and without, over several pages.
    #[test]
    fn hub_10_columns_stand_below_each_other() {
        let items = [Item("bill", Some("open"), Some(1)), Item("größer", None, None)];
        let mut table = Table::new(COLUMNS);
        let plain = ["NAME    CIRCUIT  LAST", "bill    open     1", "größer  -        -"];
        assert_eq!(table.lines(&items, false), plain);
        assert_eq!(table.lines(&items[..1], false), plain[1..2], "the title stands there once");
        let painted = Table::new(COLUMNS).lines(&items, true);
        assert!(painted[1].contains("\u{1b}[31mopen\u{1b}[0m     1"), "{painted:?}");
        let bare = painted.iter().map(|line| {
            ["1", "0", "31"]
                .iter()
                .fold(line.clone(), |line, code| line.replace(&format!("\u{1b}[{code}m"), ""))
        });
        assert_eq!(bare.collect::<Vec<_>>(), plain);
    }
}
