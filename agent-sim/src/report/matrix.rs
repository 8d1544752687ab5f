//! Numbers in coloured squares, where two things were varied.

use super::svg::{self, DrawError, FINE, Surface};
use super::{RGBColor, font, footed, text_width};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const SQUARE: (i32, i32) = (46 * FINE as i32, 18 * FINE as i32);
/// Above the squares: a title and the columns' names.
const HEAD: i32 = 52 * FINE as i32;
/// Between rows of matrices.
const GAP: i32 = 14 * FINE as i32;
/// Above all matrices.
const LEGEND: i32 = 30 * FINE as i32;

/// One number.
#[derive(Debug, Clone, PartialEq)]
pub struct Square {
    /// The number.
    pub text: String,
    /// Behind it; pale enough to be read on.
    pub colour: RGBColor,
}

/// What one matrix says.
#[derive(Debug, Clone, Default)]
pub struct Matrix {
    /// Stands above it.
    pub title: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Names of the rows with a square a column; `None` stays empty.
    pub rows: Vec<(String, Vec<Option<Square>>)>,
}

/// Several matrices in one picture, two to a row, below what their colours mean.
pub fn matrix_panels(
    matrices: &[Matrix],
    legend: &[(&str, RGBColor)],
    provenance: &str,
) -> Result<String, DrawError> {
    let heights: Vec<i32> = matrices
        .chunks(2)
        .map(|pair| {
            let rows = pair.iter().map(|matrix| matrix.rows.len()).max();
            HEAD + rows.unwrap_or(0) as i32 * SQUARE.1 + GAP
        })
        .collect();
    let height = (LEGEND + heights.iter().sum::<i32>()) as u32 / FINE;
    svg::render((1200, height + super::PROVENANCE), |surface, _| {
        let area = footed(surface, provenance)?;
        draw_legend(&area, legend)?;
        let middle = area.dim_in_pixel().0 as i32 / 2;
        let mut top = LEGEND;
        for (pair, height) in matrices.chunks(2).zip(heights) {
            for (matrix, left) in pair.iter().zip([0, middle]) {
                draw(&area, matrix, (left, top))?;
            }
            top += height;
        }
        Ok(())
    })
}

fn draw_legend(area: &Surface<'_>, legend: &[(&str, RGBColor)]) -> Result<(), DrawError> {
    let fine = FINE as i32;
    let (mut x, y) = (16 * fine, LEGEND / 2);
    for (name, colour) in legend {
        let corners = [(x, y - 6 * fine), (x + 18 * fine, y + 6 * fine)];
        area.draw(&Rectangle::new(corners, colour.filled()))?;
        x += 24 * fine;
        write(area, name, (x, y), HPos::Left)?;
        x += text_width(name, 12.0) + 18 * fine;
    }
    Ok(())
}

fn draw(area: &Surface<'_>, matrix: &Matrix, (left, top): (i32, i32)) -> Result<(), DrawError> {
    let fine = FINE as i32;
    let names = matrix.rows.iter().map(|(name, _)| text_width(name, 12.0));
    let first = left + names.max().unwrap_or(0) + 16 * fine;
    let middle = first + matrix.columns.len() as i32 * SQUARE.0 / 2;
    let style = font(15.0).pos(Pos::new(HPos::Center, VPos::Top));
    area.draw(&Text::new(
        matrix.title.clone(),
        (middle, top + 6 * fine),
        style,
    ))?;
    for (column, name) in (0..).zip(&matrix.columns) {
        let place = (
            first + column * SQUARE.0 + SQUARE.0 / 2,
            top + HEAD - 12 * fine,
        );
        write(area, name, place, HPos::Center)?;
    }
    for (row, (name, squares)) in (0..).zip(&matrix.rows) {
        let above = top + HEAD + row * SQUARE.1;
        let level = above + SQUARE.1 / 2;
        write(area, name, (first - 8 * fine, level), HPos::Right)?;
        for (column, square) in (0..).zip(squares) {
            let Some(square) = square else { continue };
            let x = first + column * SQUARE.0;
            let corners = [
                (x + fine, above + fine),
                (x + SQUARE.0 - fine, above + SQUARE.1 - fine),
            ];
            area.draw(&Rectangle::new(corners, square.colour.filled()))?;
            write(area, &square.text, (x + SQUARE.0 / 2, level), HPos::Center)?;
        }
    }
    Ok(())
}

fn write(area: &Surface<'_>, text: &str, place: (i32, i32), side: HPos) -> Result<(), DrawError> {
    let style = font(12.0).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(text.to_owned(), place, style))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_that_are_not_there_stay_empty_and_all_text_is_escaped() {
        let colour = RGBColor(0x12, 0x34, 0x56);
        let square = |text: &str| {
            Some(Square {
                text: text.into(),
                colour,
            })
        };
        let matrix = |title: &str| Matrix {
            title: title.into(),
            columns: vec!["few".into(), "many".into()],
            rows: vec![
                ("still".into(), vec![square("1.5"), square("> 2")]),
                ("windy".into(), vec![None, square("3.0")]),
            ],
        };
        let three = [matrix("one"), matrix("two"), matrix("three")];
        let draw = || matrix_panels(&three, &[("all & sundry", colour)], "here").unwrap();
        let text = draw();
        assert_eq!(text.matches("#123456").count(), 1 + 3 * 3);
        assert!(
            [
                "one",
                "two",
                "three",
                "many",
                "windy",
                "&gt; 2",
                "all &amp; sundry",
                "here"
            ]
            .iter()
            .all(|said| text.contains(said))
        );
        assert_eq!(text, draw(), "same input, same bytes");
        assert!(matrix_panels(&[], &[], "here").unwrap().contains("</svg>"));
    }
}
