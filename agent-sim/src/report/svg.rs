//! SVG files with plotters, and what it lacks for them.

use plotters::coord::Shift;
use plotters::element::{Drawable, PointCollection};
use plotters::prelude::*;
use plotters_backend::DrawingErrorKind;
use plotters_svg::SVGBackend;
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

/// The displayed sizes of the bitmaps in a drawing, in order.
#[derive(Default)]
pub struct Bitmaps(RefCell<Vec<(i32, i32)>>);

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
    let shown = size(width, height);
    let text = text.replacen(&size(fine.0, fine.1), &shown, 1);
    Ok(scale_bitmaps(&text, &bitmaps.0.into_inner()))
}

fn size(width: impl Display, height: impl Display) -> String {
    format!("width=\"{width}\" height=\"{height}\"")
}

/// Gives each `<image>` its displayed size, and the media type that plotters-svg misspells.
fn scale_bitmaps(text: &str, sizes: &[(i32, i32)]) -> String {
    let mut parts = text.split("<image ");
    let mut scaled = parts.next().unwrap_or_default().to_owned();
    for (part, (width, height)) in parts.zip(sizes) {
        scaled.push_str("<image preserveAspectRatio=\"none\" ");
        match (part.find("width="), part.find(" href=")) {
            (Some(from), Some(to)) => {
                scaled.push_str(&part[..from]);
                scaled.push_str(&size(width, height));
                scaled.push_str(&part[to..].replacen("data:png;", "data:image/png;", 1));
            }
            _ => scaled.push_str(part),
        }
    }
    scaled
}

/// A coarse bitmap stretched over a rectangle: the viewer interpolates between its pixels, and the
/// file stays small.
pub struct Bitmap<'b, C> {
    /// Upper left and lower right corner.
    pub corners: [C; 2],
    /// Columns and rows.
    pub size: (u32, u32),
    /// Three bytes a pixel, row by row from the top.
    pub rgb: Vec<u8>,
    /// Where its displayed size is noted.
    pub noted_in: &'b Bitmaps,
}

impl<'a, C> PointCollection<'a, C> for &'a Bitmap<'_, C> {
    type Point = &'a C;
    type IntoIter = &'a [C; 2];

    fn point_iter(self) -> Self::IntoIter {
        &self.corners
    }
}

impl<C, DB: DrawingBackend> Drawable<DB> for Bitmap<'_, C> {
    fn draw<I: Iterator<Item = (i32, i32)>>(
        &self,
        mut corners: I,
        backend: &mut DB,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<DB::ErrorType>> {
        if let (Some(from), Some(to)) = (corners.next(), corners.next()) {
            let shown = (to.0 - from.0, to.1 - from.1);
            self.noted_in.0.borrow_mut().push(shown);
            backend.blit_bitmap(from, self.size, &self.rgb)?;
        }
        Ok(())
    }
}
