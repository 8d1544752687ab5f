use exmex::{Differentiate, Express, FlatEx};
use num_traits::Float;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

const XYZ: [&str; 3] = ["x", "y", "z"];

fn parsed(text: &str) -> Expression {
    Expression::parse(text, &XYZ).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn refused(text: &str) -> String {
    match Expression::parse(text, &XYZ) {
        Ok(read) => panic!("'{text}' is read as {:?}", read.program),
        Err(e) => e.to_string(),
    }
}

type Meaning<T> = fn(T, T, T) -> T;

/// Texts of x, y, z and what they mean.
fn meanings<T: Float>() -> Vec<(&'static str, Meaning<T>)> {
    fn n<T: Float>(value: f64) -> T {
        T::from(value).unwrap()
    }
    vec![
        ("x*(1-x)*(x-0.1) - y", |x, y, _| {
            x * (n::<T>(1.0) - x) * (x - n(0.1)) - y
        }),
        ("sin(pi*x)*exp(-z)", |x, _, z| {
            (n::<T>(std::f64::consts::PI) * x).sin() * (-z).exp()
        }),
        ("-x^2", |x, _, _| -(x * x)),
        ("2*-3*x", |x, _, _| n::<T>(-6.0) * x),
        ("x - y - z", |x, y, z| x - y - z),
        ("x-2-3-4", |x, _, _| x - n(2.0) - n(3.0) - n(4.0)),
        ("x/y/z", |x, y, z| x / y / z),
        ("x/2/3/4", |x, _, _| x / n(2.0) / n(3.0) / n(4.0)),
        ("x/-y^2*z", |x, y, z| x / -(y * y) * z),
        ("x - -y", |x, y, _| x + y),
        ("--x+ +y", |x, y, _| x + y),
        ("(x^-2)^3", |x, _, _| (x * x * x * x * x * x).recip()),
        ("1e-3*x + .5*y - 2.5E3 + 1.e1*z + 3e+0", |x, y, z| {
            n::<T>(1e-3) * x + n::<T>(0.5) * y - n(2500.0) + n::<T>(10.0) * z + n(3.0)
        }),
        ("max(x, min(y, max(z, -1))) + abs(min(x,\ty))", |x, y, z| {
            x.max(y.min(z.max(n(-1.0)))) + x.min(y).abs()
        }),
        ("-sin(x)^2 + e^(-x^2)", |x, _, _| {
            (-x * x).exp() - x.sin() * x.sin()
        }),
        ("2^-x", |x, _, _| n::<T>(2.0).powf(-x)),
        ("2^-max(x, y)", |x, y, _| n::<T>(2.0).powf(-x.max(y))),
        ("x^3 + y^0 + y^17", |x, y, _| {
            x * x * x + T::one() + y.powi(17)
        }),
        (
            "sqrt(x*x) + ln(y*y) + log(y*y) + sign(z) + signum(x)",
            |x, y, z| x.abs() + n::<T>(2.0) * (y * y).ln() + z.signum() + x.signum(),
        ),
        (
            "tan(x) + tanh(y) + sinh(z) + cosh(x) + atan(y)",
            |x, y, z| x.tan() + y.tanh() + z.sinh() + x.cosh() + y.atan(),
        ),
        ("PI - π + E - e + x", |x, _, _| x),
        ("0*x + z", |_, _, z| z),
        ("7", |_, _, _| n(7.0)),
    ]
}

fn values_are_meant<T: Float + std::fmt::Debug>(tolerance: f64) {
    // Two blocks and a bit, over signs and sizes.
    let points = 300;
    let column = |step: f64| -> Vec<T> {
        let value = |i: usize| (i as f64 * step).fract() * 3.0 - 1.4;
        (0..points).map(|i| T::from(value(i)).unwrap()).collect()
    };
    let [x, y] = [column(0.618), column(0.414)];
    let z = [T::from(0.7).unwrap()];
    let mut scratch = Scratch::default();
    for (text, meaning) in meanings::<T>() {
        let expression = parsed(text);
        let mut out = vec![T::nan(); points];
        expression.evaluate(&[&x, &y, &z], &mut out, &mut scratch);
        for i in 0..points {
            let meant = meaning(x[i], y[i], z[0]);
            let near = (out[i] - meant).abs().to_f64().unwrap()
                <= tolerance * (1.0 + meant.abs().to_f64().unwrap());
            assert!(near, "{text}: {:?} for {meant:?} at {i}", out[i]);
            let mut alone = [T::nan()];
            expression.evaluate(&[&[x[i]], &[y[i]], &z], &mut alone, &mut scratch);
            assert_eq!(alone[0], out[i], "{text} alone at {i}");
        }
    }
}

#[test]
fn values_are_those_meant_in_both_precisions_and_one_at_a_time() {
    values_are_meant::<f64>(1e-12);
    values_are_meant::<f32>(2e-5);
    assert_eq!(parsed("x - y - z").at(&[1.0, 2.0, 3.0]), -4.0);
    assert_eq!(Expression::constant(2.5).at(&[]), 2.5);
}

#[test]
fn what_is_the_same_everywhere_is_spread_over_the_output() {
    let mut out = [0.0f32; 5];
    parsed("x*y").evaluate(&[&[2.0], &[3.0], &[]], &mut out, &mut Scratch::default());
    assert_eq!(out, [6.0; 5]);
    parsed("y").evaluate(
        &[&[], &[1.0, 2.0, 3.0, 4.0, 5.0]],
        &mut out,
        &mut Scratch::default(),
    );
    assert_eq!(out, [1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn expressions_know_what_they_depend_on() {
    let expression = parsed("x + 0*y");
    assert!(expression.uses(0) && !expression.uses(1) && !expression.uses(9));
    assert_eq!(expression.text(), "x + 0*y");
    assert_eq!(expression.derivative(1).unwrap().at(&[1.0, 1.0, 1.0]), 0.0);
    assert_eq!(
        Expression::constant(3.0).derivative(0).unwrap().at(&[]),
        0.0
    );
    fn shared<T: Send + Sync>() {}
    shared::<Expression>();
}

#[test]
fn common_parts_are_computed_once() {
    // x+y, sin of it, its square, the sum of both.
    let shared = parsed("sin(x+y) + (y+x)^2");
    assert_eq!(shared.program.instructions.len(), 2 + 4);
    // Two numbers and what is left of 2·3·x + 4^0.5.
    let folded = parsed("2*3*x + 4^0.5");
    assert_eq!(folded.program.instructions.len(), 3 + 2);
}

#[test]
fn refusals_name_what_is_wrong_and_what_to_do() {
    for (text, said) in [
        ("x + w", "there is no 'w' here; expressions may use x, y, z"),
        ("floor(x)", "no function 'floor'; there are sin, cos"),
        ("atan2(x, y)", "no function 'atan2'"),
        ("log10(x)", "no function 'log10'"),
        (
            "x < y",
            "'<' has no meaning here; there are + - * / ^ ( ) and sin",
        ),
        ("{x}", "'{' has no meaning"),
        ("2x", "no operator before 'x'; products are written with *"),
        ("2 (x)", "no operator before '('"),
        ("x(1-x)", "no operator before '('"),
        ("(x)(y)", "no operator before '('"),
        ("1e", "no operator before 'e'"),
        ("sin x", "sin is a function; write sin(…)"),
        ("min(x)", "min takes two values"),
        ("max(x, y, z)", "max takes two values"),
        ("sin(x, y)", "sin takes one value"),
        ("(x, y)", "',' has no meaning"),
        ("x, y", "',' has no meaning"),
        ("x^y^z", "write (a^b)^c or a^(b^c)"),
        ("2^-x^2", "write (a^b)^c or a^(b^c)"),
        ("x**2", "no value before '*'"),
        ("x +", "no value before the end"),
        ("-", "no value before the end"),
        ("()", "no value before ')'"),
        ("min(, x)", "no value before ','"),
        ("((x)", "parentheses do not match: 1 '(' too many"),
        ("x)", "parentheses do not match: 1 ')' too many"),
        ("1.2.3", "'1.2.3' is no number"),
        ("1e999", "'1e999' is no number"),
        (
            "x + 1/0",
            "a part without variables is inf; numbers must be finite",
        ),
        ("x*exp(100)", "below 3e38"),
        (" ", "an expression is missing"),
    ] {
        let message = refused(text);
        assert!(message.contains(said), "{text}: {message}");
    }
    for name in ["e", "pi", "sin", "max"] {
        let message = Expression::parse("1", &["x", name])
            .unwrap_err()
            .to_string();
        assert!(message.contains(&format!("nothing can be named '{name}'")));
    }
}

#[test]
fn what_is_too_long_too_deep_or_too_large_is_refused() {
    let long = "x".repeat(2001);
    assert!(refused(&long).contains("longer than 2000 characters"));
    let nested = |depth: usize| "(".repeat(depth) + "x" + &")".repeat(depth);
    parsed(&nested(64));
    assert!(refused(&nested(65)).contains("more than 64 parentheses"));
    // 180 different bases, some 50 instructions for the second derivative of each.
    let sum = |sign: char| (10..100).map(move |i| format!("(x{sign}{i})^-15"));
    let large = sum('+').chain(sum('-')).collect::<Vec<_>>().join("+");
    let first = parsed(&large).derivative(0).unwrap();
    let message = first.derivative(0).unwrap_err().to_string();
    assert!(
        message.starts_with("cannot be differentiated by x: it takes more than 4096 operations")
    );
}

/// The longest texts of each kind, whose derivatives `exmex` takes minutes for.
#[test]
fn long_expressions_are_read_and_differentiated_at_once() {
    let begin = std::time::Instant::now();
    for text in [
        "x*x+".repeat(499) + "x",
        "(x+1)*".repeat(333) + "x",
        "(1+x)/".repeat(300) + "x",
        "sin(x*".repeat(60) + "x" + &")".repeat(60),
        "(x^".repeat(60) + "x" + &")".repeat(60),
        "max(x,".repeat(60) + "y" + &")".repeat(60),
        (0..60).fold("x".to_owned(), |inner, _| format!("({inner})^15")),
        "-".repeat(1999) + "x",
        "x".to_owned() + &"/-x".repeat(600),
    ] {
        let expression = parsed(&text);
        for first in 0..2 {
            if let Ok(derivative) = expression.derivative(first) {
                derivative.wgsl(&XYZ, "e");
                let _ = derivative
                    .derivative(0)
                    .map(|second| second.wgsl(&XYZ, "e"));
            }
        }
    }
    assert!(begin.elapsed().as_secs() < 20);
}

#[test]
fn points_without_a_finite_value_are_found() {
    let unit = [[-1.0, 1.0]; 3];
    let at = |text: &str, ranges: &[[f64; 2]]| parsed(text).not_finite(ranges);
    assert_eq!(at("1/x", &unit), Some(vec![0.0; 3]));
    assert!(at("ln(y)", &unit).unwrap()[1] <= 0.0);
    assert!(at("sqrt(x+y)", &unit).is_some_and(|p| p[0] + p[1] < 0.0));
    assert!(at("sqrt(0.9-x)", &unit).is_some_and(|p| p[0] > 0.9));
    assert_eq!(at("1/(x-2)", &[[1.0, 3.0]; 3]), Some(vec![2.0; 3]));
    // Between the points, too.
    assert!(at("1/(x-0.3)", &unit).is_some_and(|p| (p[0] - 0.3).abs() < 1e-9));
    let found = at("x/(2+y) + z/(y - 0.37*x - 0.2)", &unit).unwrap();
    assert!((found[1] - 0.37 * found[0] - 0.2).abs() < 1e-9, "{found:?}");
    assert!(at("(x-0.3)^(-3)", &unit).is_some());
    // Nor does one where no sign changes, because it does in a factor.
    for text in [
        "1/(x-0.3)^2",
        "y*(x-0.3)^(-4)",
        "1/(2*abs(x-0.3))",
        "1/sqrt((x-0.3)*(x-0.3))",
        "1/((x-0.3)^2)^0.7",
    ] {
        let found = at(text, &unit);
        assert!(found.is_some_and(|p| (p[0] - 0.3).abs() < 1e-9), "{text}");
    }
    assert_eq!(at("1/(x^2)^(-0.5) + 1/(0.1 + (x-0.3)^2)", &unit), None);
    assert_eq!(at("1/(x^2+0.1) + 1/(sign(x)+0.5)", &unit), None);
    // A minimum does not hide it.
    assert!(at("min(x, ln(y))", &unit).is_some() && at("max(ln(y), x)", &unit).is_some());
    // In single precision only: exp(89) is above 3.4e38.
    assert!(at("exp(x)", &[[0.0, 89.0]; 3]).is_some());
    assert_eq!(at("exp(x) + sqrt(1+y) + 1/(2+z)", &unit), None);
    assert_eq!(at("sqrt(x)", &[[0.0, 1.0]; 3]), None);
    assert_eq!(at("3", &unit), None);
    assert!(Expression::constant(f64::NAN).not_finite(&[]).is_some());
    let many: Vec<String> = (0..10).map(|k| format!("a{k}")).collect();
    let names: Vec<&str> = many.iter().map(String::as_str).collect();
    let product = Expression::parse(&format!("1/({})", many.join("*")), &names).unwrap();
    assert!(product.not_finite(&[[-1.0, 1.0]; 10]).is_some());
    assert_eq!(product.not_finite(&[[1.0, 2.0]; 10]), None);
}

fn naga_accepts(wgsl: &Wgsl) {
    let body = format!("{}out[0] = {};", wgsl.lets, wgsl.value);
    let shader = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<f32>;
        @compute @workgroup_size(1) fn main() {{
            let x = out[0]; let y = out[1]; let z = out[2];
            {body}
        }}"
    );
    let module = naga::front::wgsl::parse_str(&shader)
        .unwrap_or_else(|e| panic!("{}", e.emit_to_string(&shader)));
    let flags = naga::valid::ValidationFlags::all();
    naga::valid::Validator::new(flags, naga::valid::Capabilities::empty())
        .validate(&module)
        .unwrap_or_else(|e| panic!("{body}: {e:?}"));
}

#[test]
fn wgsl_is_as_expected_and_valid() {
    for (text, value) in [
        ("x*(1-x)*(x-0.1)-y", "(((x * (1.0 - x)) * (x - 0.1)) - y)"),
        ("-x^2", "(-(x * x))"),
        ("x - -2.5e-7", "(x - (-2.5e-7))"),
        ("2^-x", "pow(2.0, (-x))"),
        ("ln(x)/y", "(log(x) / y)"),
        ("min(x, tanh(y))", "min(x, tanh(clamp(y, -15.0, 15.0)))"),
        ("5", "5.0"),
    ] {
        let wgsl = parsed(text).wgsl(&XYZ, "e");
        assert_eq!((wgsl.lets.as_str(), wgsl.value.as_str()), ("", value));
        naga_accepts(&wgsl);
    }
    let shared = parsed("sin(x+y) + (x+y)^2").wgsl(&["u[i]", "v[i]"], "f");
    assert_eq!(shared.lets, "let f2 = (u[i] + v[i]);\n");
    assert_eq!(shared.value, "(sin(f2) + (f2 * f2))");
    for (text, _) in meanings::<f64>() {
        naga_accepts(&parsed(text).wgsl(&XYZ, "e"));
        naga_accepts(&parsed(text).derivative(0).unwrap().wgsl(&XYZ, "e"));
    }
    let long = parsed(&("x*y+".repeat(300) + "z"));
    naga_accepts(&long.wgsl(&XYZ, "e"));
}

/// An expression whose text, value and meaning to `exmex` are written down independently.
#[derive(Debug, Clone)]
enum Tree {
    Variable(usize),
    Number(f64),
    Neg(Box<Tree>),
    Call(&'static str, Box<Tree>),
    Two(char, Box<Tree>, Box<Tree>),
    Extreme(&'static str, Box<Tree>, Box<Tree>),
    Power(Box<Tree>, i32),
}

impl Tree {
    fn at(&self, point: [f64; 3]) -> f64 {
        match self {
            Self::Variable(k) => point[*k],
            Self::Number(value) => *value,
            Self::Neg(a) => -a.at(point),
            Self::Call(name, a) => {
                let a = a.at(point);
                match *name {
                    "sin" => a.sin(),
                    "cos" => a.cos(),
                    "tan" => a.tan(),
                    "tanh" => a.tanh(),
                    "sinh" => a.sinh(),
                    "cosh" => a.cosh(),
                    "exp" => a.exp(),
                    "ln" => a.ln(),
                    "sqrt" => a.sqrt(),
                    "atan" => a.atan(),
                    _ => a.abs(),
                }
            }
            Self::Two(op, a, b) => {
                let (a, b) = (a.at(point), b.at(point));
                match op {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    '/' => a / b,
                    _ => a.powf(b),
                }
            }
            Self::Extreme(name, a, b) => {
                let (a, b) = (a.at(point), b.at(point));
                match *name {
                    _ if a.is_nan() || b.is_nan() => f64::NAN,
                    "min" => a.min(b),
                    _ => a.max(b),
                }
            }
            Self::Power(a, n) => {
                let a = a.at(point);
                let size = match n.abs() {
                    1 => a,
                    2 => a * a,
                    _ => a * a * a,
                };
                if *n < 0 { 1.0 / size } else { size }
            }
        }
    }

    /// Whether all parts have values of moderate size, and powers have derivatives.
    fn is_tame(&self, point: [f64; 3]) -> bool {
        let parts: Vec<&Tree> = match self {
            Self::Variable(_) | Self::Number(_) => vec![],
            Self::Neg(a) | Self::Call(_, a) | Self::Power(a, _) => vec![a],
            Self::Two('^', a, _) if a.at(point) < 1e-6 => return false,
            Self::Two(_, a, b) | Self::Extreme(_, a, b) => vec![a, b],
        };
        self.at(point).abs() < 1e4 && parts.iter().all(|part| part.is_tame(point))
    }

    /// With no more parentheses than mathematicians need, and how tightly its last operation binds:
    /// 0 a sum, 1 a product, 2 a sign, 3 a power, 4 nothing.
    fn text(&self) -> (String, u8) {
        let within = |tree: &Tree, least: u8| match tree.text() {
            (text, binds) if binds >= least => text,
            (text, _) => format!("({text})"),
        };
        match self {
            Self::Variable(k) => (XYZ[*k].to_owned(), 4),
            Self::Number(value) => (value.to_string(), 4),
            Self::Neg(a) => (format!("-{}", within(a, 2)), 2),
            Self::Call(name, a) => (format!("{name}({})", within(a, 0)), 4),
            Self::Two(op @ ('+' | '-'), a, b) => {
                (format!("{} {op} {}", within(a, 0), within(b, 1)), 0)
            }
            Self::Two(op @ ('*' | '/'), a, b) => {
                (format!("{}{op}{}", within(a, 1), within(b, 2)), 1)
            }
            Self::Two(op, a, b) => (format!("{}{op}{}", within(a, 4), within(b, 4)), 3),
            Self::Extreme(name, a, b) => (format!("{name}({}, {})", within(a, 0), within(b, 0)), 4),
            Self::Power(a, n) => (format!("{}^{n}", within(a, 4)), 3),
        }
    }

    /// As `exmex` understands it.
    fn parenthesised(&self) -> String {
        match self {
            Self::Variable(_) | Self::Number(_) => self.text().0,
            Self::Neg(a) => format!("(-({}))", a.parenthesised()),
            Self::Call(name, a) => format!("({name}({}))", a.parenthesised()),
            Self::Two(op, a, b) => format!("(({}){op}({}))", a.parenthesised(), b.parenthesised()),
            Self::Extreme(name, a, b) => {
                format!("(({}){name}({}))", a.parenthesised(), b.parenthesised())
            }
            Self::Power(a, n) => format!("(({})^({n}))", a.parenthesised()),
        }
    }
}

fn trees(kinks: bool) -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (0usize..3).prop_map(Tree::Variable),
        prop::sample::select(vec![0.0, 0.25, 0.5, 1.0, 2.0, 3.0]).prop_map(Tree::Number),
    ];
    let names = vec![
        "sin", "cos", "tan", "tanh", "sinh", "cosh", "exp", "ln", "sqrt", "atan", "abs",
    ];
    let names = names[..names.len() - usize::from(!kinks)].to_vec();
    let operators = vec!['+', '-', '*', '/', '+', '-', '*', '/', '^'];
    leaf.prop_recursive(6, 60, 2, move |inner| {
        let one = inner.clone().prop_map(Box::new);
        let two = (one.clone(), one.clone());
        let operator = prop::sample::select(operators.clone());
        let name = prop::sample::select(names.clone());
        let extreme = prop::sample::select(vec!["min", "max"]);
        let exponent = prop::sample::select(vec![-3, -2, -1, 2, 3]);
        prop_oneof![
            6 => (operator, two.clone()).prop_map(|(op, (a, b))| Tree::Two(op, a, b)),
            1 => one.clone().prop_map(Tree::Neg),
            2 => (name, one.clone()).prop_map(|(name, a)| Tree::Call(name, a)),
            1 => (one, exponent).prop_map(|(a, n)| Tree::Power(a, n)),
            u32::from(kinks) => (extreme, two).prop_map(|(name, (a, b))| Tree::Extreme(name, a, b)),
        ]
    })
}

fn points() -> impl Strategy<Value = [f64; 3]> {
    [-2.0..2.0f64, -2.0..2.0f64, -2.0..2.0f64]
}

/// What is left of them when parts without a value are not.
fn read(tree: &Tree) -> Option<Expression> {
    match Expression::parse(&tree.text().0, &XYZ) {
        Err(BadExpression::NotFinite(_)) => None,
        read => Some(read.unwrap_or_else(|e| panic!("{}: {e}", tree.text().0))),
    }
}

proptest! {
    // The same cases each time: how near a difference quotient or a rounded value comes depends on
    // the draw.
    #![proptest_config(ProptestConfig {
        cases: 4000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_expressions_have_the_value_of_their_tree(tree in trees(true), point in points()) {
        let meant = tree.at(point);
        if let Some(expression) = read(&tree).filter(|_| meant.is_finite()) {
            let value = expression.at(&point);
            let near = (value - meant).abs() <= 1e-9 * (1.0 + meant.abs());
            prop_assert!(near, "{} is {value}, not {meant}", tree.text().0);
        }
    }

    #[test]
    fn derivatives_are_those_of_difference_quotients(
        tree in trees(true), point in points(), k in 0usize..3,
    ) {
        let Some(expression) = read(&tree) else { return Ok(()) };
        let Ok(derivative) = expression.derivative(k) else { return Ok(()) };
        let moved = |by: f64| {
            let mut point = point;
            point[k] += by;
            expression.at(&point)
        };
        let quotient = |h: f64| (moved(h) - moved(-h)) / (2.0 * h);
        let (near, far) = (quotient(1e-4), quotient(2e-4));
        // Not where it bends too much or is too large to tell.
        if tree.is_tame(point) && (near - far).abs() < 1e-6 * (1.0 + near.abs()) {
            let slope = derivative.at(&point);
            let agree = (slope - near).abs() < 1e-4 * (1.0 + near.abs());
            prop_assert!(agree, "{} has {slope}, not {near}", tree.text().0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        rng_seed: RngSeed::Fixed(2),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn smooth_derivatives_are_those_of_exmex(tree in trees(false), point in points()) {
        let Some(expression) = read(&tree) else { return Ok(()) };
        let text = tree.parenthesised();
        let theirs = FlatEx::<f64>::parse(&text).unwrap();
        let names = theirs.var_names().to_vec();
        let index = |name: &String| XYZ.iter().position(|v| v == name).unwrap();
        let values: Vec<f64> = names.iter().map(|name| point[index(name)]).collect();
        for (n, name) in names.iter().enumerate() {
            let Ok(theirs) = theirs.clone().partial(n) else { continue };
            let Ok(ours) = expression.derivative(index(name)) else { continue };
            let (theirs, ours) = (theirs.eval(&values).unwrap(), ours.at(&point));
            if theirs.is_finite() && theirs.abs() < 1e6 {
                let agree = (theirs - ours).abs() <= 1e-6 * (1.0 + theirs.abs());
                prop_assert!(agree, "{text} by {name}: {ours}, not {theirs}");
            }
        }
    }

    #[test]
    fn wgsl_of_random_expressions_is_valid(tree in trees(true)) {
        if let Some(expression) = read(&tree) {
            naga_accepts(&expression.wgsl(&XYZ, "e"));
            if let Ok(derivative) = expression.derivative(0) {
                naga_accepts(&derivative.wgsl(&XYZ, "e"));
            }
        }
    }

    #[test]
    fn random_strings_do_no_harm(
        text in "(x|y|sin|min|max|e|pi|w|π|é|[-+*/^(),. 0-9{}<]|\\(|\\)|\t|1e-3|2\\^){0,40}",
        noise in ".{0,30}",
    ) {
        for text in [text, noise] {
            if let Ok(expression) = Expression::parse(&text, &XYZ) {
                expression.at(&[0.5, -0.5, 2.0]);
                if let Ok(derivative) = expression.derivative(0) {
                    derivative.wgsl(&XYZ, "e");
                }
            }
        }
    }
}
