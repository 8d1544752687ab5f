//! Texts that come from nodes, made fit for a terminal, a table and a page.
//!
//! A node's words may be anybody's: escape sequences would move the reader's cursor, line breaks
//! make rows, and marks that turn the direction of writing make a line say what it does not.

use agent_core::message::{Report, Status};

/// Most characters of a text in a report; nodes of ours say less.
const TEXT: usize = 200;

/// The text in characters that can be seen, cut to so many. Others are written as in Rust's source.
pub fn plain(text: &str, most: usize) -> String {
    let mut plain = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == most {
            plain.push('…');
            break;
        }
        match character {
            '\'' | '"' => plain.push(character),
            _ => plain.extend(character.escape_debug()),
        }
    }
    plain
}

/// The report with all its texts in `text`, plain. What a node says of its place is left as it came: the text
/// in it is made plain where it is read.
pub fn of_report<'t>(report: Report<'t>, text: &'t mut String) -> Report<'t> {
    match report {
        Report::Conduct { said } => Report::Conduct { said },
        Report::Hello(hello) => Report::Hello(hello),
        Report::Stored { next } => Report::Stored { next },
        Report::Action { action, ticks } => Report::Action { action, ticks },
        Report::Challenge { nonce } => Report::Challenge { nonce },
        Report::PolicyRefused { reason } => {
            *text = plain(reason, TEXT);
            Report::PolicyRefused { reason: text }
        }
        Report::Rejected { reason } => {
            *text = plain(reason, TEXT);
            Report::Rejected { reason: text }
        }
        Report::Status(status) => {
            let said = [
                status.board,
                status.firmware,
                status.fleet,
                status.last_words,
            ];
            let [board, firmware, fleet, last_words] = said.map(|text| plain(text, TEXT));
            *text = [&*board, &firmware, &fleet, &last_words].concat();
            let (board, rest) = text.split_at(board.len());
            let (firmware, rest) = rest.split_at(firmware.len());
            let (fleet, last_words) = rest.split_at(fleet.len());
            Report::Status(Status {
                board,
                firmware,
                fleet,
                last_words,
                ..status
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_stays_and_what_cannot_is_spelt_out() {
        let seen = "the chunk's end: 3 µs, \"größer\", 温度";
        assert_eq!(plain(seen, 100), seen);
        // An escape sequence, its C1 form, a line break, a backspace and a right-to-left override.
        let unseen = "\u{1b}[2J\u{9b}2J\r\n\u{8}\u{202e}\u{2066}\u{feff}\\";
        let plain = plain(unseen, 100);
        let expected = r"\u{1b}[2J\u{9b}2J\r\n\u{8}\u{202e}\u{2066}\u{feff}\\";
        assert_eq!(plain, expected);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(plain("abcdef", 6), "abcdef");
        assert_eq!(plain("abcdefg", 6), "abcdef…");
    }
}
