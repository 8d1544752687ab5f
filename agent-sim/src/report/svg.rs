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

/// Coarse bitmaps that fill rectangles of a drawing: viewers interpolate between their pixels, and
/// the file stays small.
///
/// plotters can embed bitmaps only pixel by pixel of the drawing. So a rectangle that is to hold one
/// is drawn in a colour that stands for it, and becomes an `<image>` when the drawing is done.
#[derive(Default)]
pub struct Bitmaps(RefCell<Vec<Vec<u8>>>);

impl Bitmaps {
    /// The fill of a rectangle that shows this bitmap: `columns` and `rows`, three bytes a pixel,
    /// row by row from the top.
    pub fn fill(&self, size: (u32, u32), rgb: &[u8]) -> Result<ShapeStyle, DrawError> {
        let mut bitmaps = self.0.borrow_mut();
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, size.0, size.1);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(rgb)?;
        let style = stand_in(bitmaps.len()).filled();
        bitmaps.push(file);
        Ok(style)
    }

    /// Puts the bitmaps where their stand-ins are.
    fn embed(self, mut text: String) -> String {
        for (index, file) in self.0.into_inner().iter().enumerate() {
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
    draw: impl FnOnce(&Surface<'_>, &Bitmaps) -> Result<(), DrawError>,
) -> Result<String, DrawError> {
    let bitmaps = Bitmaps::default();
    let fine = (width * FINE, height * FINE);
    let mut text = String::new();
    {
        let surface = SVGBackend::with_string(&mut text, fine).into_drawing_area();
        surface.fill(&WHITE)?;
        draw(&surface, &bitmaps)?;
        surface.present()?;
    }
    let text = text.replacen(&size(fine.0, fine.1), &size(width, height), 1);
    Ok(bitmaps.embed(text))
}

fn size(width: impl Display, height: impl Display) -> String {
    format!("width=\"{width}\" height=\"{height}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_land_in_their_rectangles() {
        let text = render((100, 50), |surface, bitmaps| {
            for x in [10, 60] {
                let fill = bitmaps.fill((1, 1), &[0, 128, 255])?;
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
}
