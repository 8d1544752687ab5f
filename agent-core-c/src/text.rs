//! Sentences in a caller's buffer.

use core::fmt::{self, Display, Write};

/// Writes as much of a sentence as fits, and always a final NUL; nothing into no room.
pub(crate) fn write(room: &mut [u8], sentence: &dyn Display) {
    let Some((last, text)) = room.split_last_mut() else {
        return;
    };
    *last = 0;
    let mut text = Text { room: text };
    // Never an error: what does not fit is left out.
    let _ = write!(text, "{sentence}");
    if let Some(end) = text.room.first_mut() {
        *end = 0;
    }
}

/// What is left of the buffer.
struct Text<'a> {
    room: &'a mut [u8],
}

impl Write for Text<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let room = core::mem::take(&mut self.room);
        let fitting = s.len().min(room.len());
        if let Some((to, rest)) = room.split_at_mut_checked(fitting) {
            for (to, from) in to.iter_mut().zip(s.bytes()) {
                *to = from;
            }
            self.room = rest;
        }
        Ok(())
    }
}
