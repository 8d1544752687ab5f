//! A picture of numbered colours, drawn pixel by pixel.

/// Pixels, each the number of a colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canvas {
    width: usize,
    height: usize,
    /// Row by row from the top.
    pub pixels: Vec<u8>,
}

impl Canvas {
    /// All of one colour.
    pub fn new(width: usize, height: usize, colour: u8) -> Self {
        Self {
            width,
            height,
            pixels: vec![colour; width * height],
        }
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    fn set(&mut self, x: isize, y: isize, colour: u8) {
        if let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y))
            && x < self.width
            && y < self.height
        {
            self.pixels[y * self.width + x] = colour;
        }
    }

    /// Fills a rectangle, `right` and `bottom` excluded.
    pub fn fill(
        &mut self,
        (left, top): (usize, usize),
        (right, bottom): (usize, usize),
        colour: u8,
    ) {
        let (right, bottom) = (right.min(self.width), bottom.min(self.height));
        for row in self.pixels.chunks_mut(self.width).take(bottom).skip(top) {
            row[left.min(right)..right].fill(colour);
        }
    }

    /// Copies rows of `width` pixels to a place inside.
    pub fn paste(&mut self, (left, top): (usize, usize), width: usize, pixels: &[u8]) {
        let rows = self.pixels.chunks_mut(self.width).skip(top);
        for (row, line) in rows.zip(pixels.chunks(width)) {
            row[left..left + width].copy_from_slice(line);
        }
    }

    /// A filled disc.
    pub fn disc(&mut self, (x, y): (f64, f64), radius: f64, colour: u8) {
        let span = |middle: f64| {
            let low = (middle - radius).floor() as isize;
            low..=(middle + radius).ceil() as isize
        };
        for row in span(y) {
            for column in span(x) {
                let (dx, dy) = (column as f64 + 0.5 - x, row as f64 + 0.5 - y);
                if dx.hypot(dy) <= radius {
                    self.set(column, row, colour);
                }
            }
        }
    }

    /// A line that is `2 radius` wide.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), radius: f64, colour: u8) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let dots = (2.0 * dx.hypot(dy)).ceil().clamp(1.0, 1e5);
        for k in 0..=dots as usize {
            let share = k as f64 / dots;
            let place = (from.0 + share * dx, from.1 + share * dy);
            self.disc(place, radius, colour);
        }
    }

    /// A diagonal cross.
    pub fn cross(&mut self, (x, y): (f64, f64), arm: f64, radius: f64, colour: u8) {
        self.line((x - arm, y - arm), (x + arm, y + arm), radius, colour);
        self.line((x - arm, y + arm), (x + arm, y - arm), radius, colour);
    }

    /// The outline of a circle, with a line that is `2 width` wide.
    pub fn circle(&mut self, middle: (f64, f64), radius: f64, width: f64, colour: u8) {
        self.arcs(middle, radius, width, colour, |_| true);
    }

    /// The same in 24 dashes.
    pub fn dashed_circle(&mut self, middle: (f64, f64), radius: f64, width: f64, colour: u8) {
        let dash = |turn: f64| ((48.0 * turn) as usize).is_multiple_of(2);
        self.arcs(middle, radius, width, colour, dash);
    }

    fn arcs(
        &mut self,
        (x, y): (f64, f64),
        radius: f64,
        width: f64,
        colour: u8,
        drawn: impl Fn(f64) -> bool,
    ) {
        let dots = (8.0 * radius).clamp(48.0, 1e5) as usize;
        let turns = (0..dots).map(|k| k as f64 / dots as f64);
        for turn in turns.filter(|turn| drawn(*turn)) {
            let (sin, cos) = (std::f64::consts::TAU * turn).sin_cos();
            self.disc((x + radius * cos, y + radius * sin), width, colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(canvas: &Canvas) -> usize {
        canvas.pixels.iter().filter(|p| **p != 0).count()
    }

    #[test]
    fn a_disc_has_the_area_of_a_disc_and_is_cut_at_the_rim() {
        let mut canvas = Canvas::new(40, 40, 0);
        canvas.disc((20.0, 20.0), 10.0, 1);
        let area = painted(&canvas) as f64;
        assert!((area - 314.2).abs() < 8.0, "{area}");
        let mut corner = Canvas::new(40, 40, 0);
        corner.disc((0.0, 0.0), 10.0, 1);
        assert!(painted(&corner) < painted(&canvas) / 3);
    }

    #[test]
    fn pasted_pixels_land_in_their_rectangle() {
        let mut canvas = Canvas::new(4, 3, 0);
        canvas.paste((1, 1), 2, &[1, 2, 3, 4]);
        assert_eq!(canvas.pixels, [0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0]);
        canvas.fill((3, 0), (9, 9), 7);
        assert_eq!(canvas.pixels, [0, 0, 0, 7, 0, 1, 2, 7, 0, 3, 4, 7]);
    }
}
