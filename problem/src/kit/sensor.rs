//! What a described sensor makes of the field at a place.

/// Reads a field: with noise, in steps, within a range. What the file leaves out changes nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensor {
    /// Standard deviation of its noise.
    pub noise: f64,
    /// Distance of two readings beside each other; 0 where readings are as fine as numbers are.
    pub quantisation: f64,
    /// The least and the largest reading.
    pub range: [f64; 2],
}

impl Sensor {
    /// One that shows the field as it is.
    pub const PLAIN: Self = Self {
        noise: 0.0,
        quantisation: 0.0,
        range: [f64::NEG_INFINITY, f64::INFINITY],
    };

    /// Whether it shows the field as it is, but for noise.
    pub fn is_faithful(&self) -> bool {
        self.quantisation == Self::PLAIN.quantisation && self.range == Self::PLAIN.range
    }

    /// What it shows of a value that has its noise already. Rounded first, then cut: the ends of the range
    /// are readings, whether they are multiples or not.
    pub fn reading(&self, value: f64) -> f64 {
        let [low, high] = self.range;
        let rounded = match self.quantisation {
            0.0 => value,
            step => step * (value / step).round(),
        };
        rounded.clamp(low, high)
    }

    /// Whether its reading goes along with such a value, but for rounding: not beyond the range.
    pub fn follows(&self, value: f64) -> bool {
        let [low, high] = self.range;
        (low..=high).contains(&value)
    }
}
