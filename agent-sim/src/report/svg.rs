//! SVG files with plotters, and what it lacks for them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::cell::RefCell;
use std::fmt::Display;

/// Drawing units per displayed pixel: plotters rounds to whole units, so finer ones make smoother
/// lines.
pub const FINE: u32 = 2;

/// The surface that pictures are drawn on.
pub type Surface<'s> = DrawingArea<SVGBackend<'s>, Shift>;

/// A picture could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("a picture could not be drawn: {0}")]
pub struct DrawError(String);

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for DrawError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self(error.to_string())
    }
}

impl From<png::EncodingError> for DrawError {
    fn from(error: png::EncodingError) -> Self {
        Self(error.to_string())
    }
}

/// What is put into a drawing apart from plotters: bitmaps and marks.
#[derive(Default)]
pub struct Inlay {
    bitmaps: RefCell<Vec<Vec<u8>>>,
    marks: RefCell<String>,
}

impl Inlay {
    /// Draws an SVG element on top of everything, in drawing units of the whole surface: a thousand
    /// agents as one path take a tenth of the bytes that plotters' circles would.
    pub fn mark(&self, element: &str) {
        let mut marks = self.marks.borrow_mut();
        marks.push_str(element);
        marks.push('\n');
    }

    /// The fill of a rectangle that shows a bitmap: `columns` and `rows`, three bytes a pixel, row by
    /// row from the top. A coarse one is enough: viewers interpolate between its pixels, and the file
    /// stays small.
    ///
    /// plotters can embed bitmaps only pixel by pixel of the drawing. So a rectangle that is to hold
    /// one is drawn in a colour that stands for it, and becomes an `<image>` when the drawing is done.
    pub fn fill(&self, size: (u32, u32), rgb: &[u8]) -> Result<ShapeStyle, DrawError> {
        let mut bitmaps = self.bitmaps.borrow_mut();
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, size.0, size.1);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(rgb)?;
        let style = stand_in(bitmaps.len()).filled();
        bitmaps.push(file);
        Ok(style)
    }

    /// Puts the bitmaps where their stand-ins are and the marks on top.
    fn embed(self, mut text: String) -> String {
        let marks = self.marks.into_inner();
        if let Some(end) = text.rfind("</svg>") {
            text.insert_str(end, &marks);
        }
        for (index, file) in self.bitmaps.into_inner().iter().enumerate() {
            let RGBColor(r, g, b) = stand_in(index);
            let tail = format!(" opacity=\"1\" fill=\"#{r:02X}{g:02X}{b:02X}\" stroke=\"none\"/>");
            let Some(end) = text.find(&tail) else {
                continue;
            };
            let data = format!(
                " preserveAspectRatio=\"none\" href=\"data:image/png;base64,{}\"/>",
                BASE64.encode(file)
            );
            text.replace_range(end..end + tail.len(), &data);
            if let Some(start) = text[..end].rfind("<rect ") {
                text.replace_range(start..start + "<rect ".len(), "<image ");
            }
        }
        text
    }
}

/// A colour that no picture uses.
fn stand_in(index: usize) -> RGBColor {
    RGBColor(0xb1, 0x7a, index as u8)
}

/// An SVG file of this displayed size, drawn by `draw`.
pub fn render(
    (width, height): (u32, u32),
    draw: impl FnOnce(&Surface<'_>, &Inlay) -> Result<(), DrawError>,
) -> Result<String, DrawError> {
    let inlay = Inlay::default();
    let fine = (width * FINE, height * FINE);
    let mut text = String::new();
    {
        let surface = SVGBackend::with_string(&mut text, fine).into_drawing_area();
        surface.fill(&WHITE)?;
        draw(&surface, &inlay)?;
        surface.present()?;
    }
    let text = text.replacen(&size(fine.0, fine.1), &size(width, height), 1);
    Ok(inlay.embed(text))
}

fn size(width: impl Display, height: impl Display) -> String {
    format!("width=\"{width}\" height=\"{height}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_land_in_their_rectangles() {
        let text = render((100, 50), |surface, inlay| {
            for x in [10, 60] {
                let fill = inlay.fill((1, 1), &[0, 128, 255])?;
                surface.draw(&Rectangle::new([(x, 5), (x + 20, 30)], fill))?;
            }
            Ok(())
        })
        .unwrap();
        assert!(text.starts_with("<svg width=\"100\" height=\"50\" viewBox=\"0 0 200 100\""));
        for x in [10, 60] {
            let image = format!("<image x=\"{x}\" y=\"5\" width=\"20\" height=\"25\" preserve");
            assert!(text.contains(&image), "{text}");
        }
        assert_eq!(text.matches("data:image/png;base64,iVBOR").count(), 2);
        assert!(!text.contains("#B17A"));
    }

    #[test]
    fn marks_come_last() {
        let text = render((10, 10), |surface, inlay| {
            inlay.mark("<circle/>");
            surface.draw(&Text::new("below", (0, 0), ("sans", 5)))?;
            Ok(())
        })
        .unwrap();
        assert!(text.trim_end().ends_with("<circle/>\n</svg>"), "{text}");
    }
}
