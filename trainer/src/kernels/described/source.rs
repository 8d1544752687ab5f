//! The stages and reactions of a described field as WGSL, behind `wgsl/described.wgsl`.

use super::{COEFFICIENTS, COLUMNS, Described, Kinds};
use problem::kit::expression::Expression;
use std::fmt::Write;

/// Writes a kernel's stages and reactions out.
pub(super) struct Writer<'a> {
    pub(super) kernel: &'a Described,
    pub(super) source: &'a mut String,
}

impl Writer<'_> {
    fn line(&mut self, text: impl AsRef<str>) {
        self.source.push_str(text.as_ref());
        self.source.push('\n');
    }

    /// All of it.
    pub(super) fn write(&mut self) {
        let fields = self.kernel.fields();
        let state = match fields {
            1 => "f32".to_owned(),
            _ => format!("vec{fields}<f32>"),
        };
        self.line(format!("alias State = {state};"));
        self.reactions();
        self.press();
        self.advance();
        self.advance_adjoint();
    }

    /// One field's part of a state.
    fn part(&self, state: &str, field: usize) -> String {
        match self.kernel.fields() {
            1 => state.to_owned(),
            _ => format!("{state}.{}", ["x", "y", "z", "w"][field]),
        }
    }

    /// Where a field's values begin.
    fn first(&self, field: usize) -> usize {
        field * self.kernel.nodes()
    }

    /// A state of what this says for each field.
    fn state(&self, value: impl Fn(usize) -> String) -> String {
        let values: Vec<String> = (0..self.kernel.fields()).map(value).collect();
        format!("State({})", values.join(", "))
    }

    /// The rates of reactions, and the product of their derivatives, transposed, with a pull at them.
    fn reactions(&mut self) {
        let kernel = self.kernel;
        if !kernel.reacts() {
            return;
        }
        let kit = kernel.system.kit();
        let mut names: Vec<String> = (0..kernel.fields()).map(|f| self.part("u", f)).collect();
        let numbers = kit.changeable().zip(kernel.system.coefficients());
        names.extend(numbers.map(|(which, value)| match which {
            Some(which) => format!("{}()", COEFFICIENTS[which]),
            None => format!("({:?}f)", *value as f32),
        }));
        names.extend(["x", "y", "t"].map(str::to_owned));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let place = "    let x = coordinate(j / POINTS_1, 0u);
    let y = select(0.0, coordinate(j % POINTS_1, 1u), AXES == 2u);";
        let rest = kernel.rest();
        let resting = |f: usize| {
            let nodes = kernel.nodes();
            rest[f * nodes..(f + 1) * nodes].contains(&1.0)
        };
        let mut count = 0;
        let mut value = |source: &mut String, expression: &Expression| {
            count += 1;
            let wgsl = expression.wgsl(&names, &format!("e{count}_"));
            // Hardware's own are good near zero only.
            let near_zero = |text: &str| text.replace("sin(", "sine(").replace("cos(", "cosine(");
            source.push_str(&near_zero(&wgsl.lets));
            near_zero(&wgsl.value)
        };
        let (mut rates, mut pulls) = (String::new(), String::new());
        for (f, field) in kit.described.iter().enumerate() {
            let Some(reaction) = &field.reaction else {
                continue;
            };
            let (rate, pull) = (self.part("rate", f), self.part("pull", f));
            let first = self.first(f);
            let free = |value: &str| match resting(f) {
                true => format!("select({value}, 0.0, rests({first}u, j))"),
                false => value.to_owned(),
            };
            let speed = value(&mut rates, &reaction.rate);
            _ = writeln!(rates, "    {rate} = {};", free(&speed));
            _ = writeln!(pulls, "    let free_{f} = {};", free(&pull));
            for (by, derivative) in &reaction.derivatives {
                let slope = value(&mut pulls, derivative);
                let g = self.part("g", *by);
                let product = format!("{g} + {slope} * free_{f}");
                // At nodes that rest a slope need not be finite.
                let kept = match resting(f) {
                    true => format!("select({product}, {g}, rests({first}u, j))"),
                    false => product,
                };
                _ = writeln!(pulls, "    {g} = {kept};");
            }
        }
        self.line(format!(
            "// How fast reactions change a node's values.
fn rates(u: State, j: u32, t: f32) -> State {{
{place}
    var rate = State();
{rates}    return rate;
}}

// From what pulls at the rates to what pulls at the values.
fn rates_adjoint(u: State, j: u32, t: f32, pull: State) -> State {{
{place}
    var g = State();
{pulls}    return g;
}}

// Half a step of reactions by the midpoint rule.
fn grow(u: State, j: u32, t: f32) -> State {{
    let middle = u + 0.25 * SOLVER_DT * rates(u, j, t);
    return u + 0.5 * SOLVER_DT * rates(middle, j, t + 0.25 * SOLVER_DT);
}}

fn grow_adjoint(u: State, j: u32, t: f32, g: State) -> State {{
    let middle = u + 0.25 * SOLVER_DT * rates(u, j, t);
    let g_middle = rates_adjoint(middle, j, t + 0.25 * SOLVER_DT, 0.5 * SOLVER_DT * g);
    return g + g_middle + rates_adjoint(u, j, t, 0.25 * SOLVER_DT * g_middle);
}}"
        ));
    }

    /// The forcing at a node.
    fn press(&mut self) {
        let kernel = self.kernel;
        self.line("fn press_at(step: u32, j: u32) {");
        for (p, &field) in kernel.pushed.iter().enumerate() {
            let acted = match field == kernel.system.kit().driven {
                true => "acted(j) + ",
                false => "",
            };
            let (at, first) = (p * kernel.nodes(), self.first(field));
            self.line(format!(
                "    set_push({at}u + j, {acted}befallen(step, {first}u + j));"
            ));
        }
        self.line("}");
    }

    /// Where a node's row of a table begins.
    fn row(
        &self,
        table: &str,
        (f, s): (usize, usize),
        at: usize,
        kinds: &Kinds,
        columns: usize,
    ) -> String {
        let axis = kinds.axis;
        if kinds.single() {
            return format!("{at}u + j");
        }
        let along = format!("{at}u + along(j, {axis}u)");
        if kinds.lines.len() == 1 {
            return along;
        }
        let each = columns * kinds.length();
        format!(
            "{along} + {each}u * u32(tables[{table}_KIND_{f}_{s}_IN_TABLES + across(j, {axis}u)])"
        )
    }

    /// Where the tables of a stage begin: of `mixing`, of `inverse` and of its transpose.
    fn places(&self, field: usize, stage: usize) -> [usize; 3] {
        let (mut mixing, mut inverse) = (0, 0);
        for (f, stages) in self.kernel.stages.iter().enumerate() {
            for (s, at) in stages.iter().enumerate() {
                let size = at.inverse.size(at.width);
                if (f, s) == (field, stage) {
                    return [mixing, inverse, inverse + size];
                }
                mixing += at.mixing.size(COLUMNS);
                inverse += if at.solved { 2 * size } else { 0 };
            }
        }
        unreachable!("stages of the kernel")
    }

    /// A stage's explicit part at a node, of what is `HERE` or, transposed, of what is `MIXED`.
    fn mixed(&self, f: usize, s: usize, transposed: bool) -> String {
        let stage = &self.kernel.stages[f][s];
        let [at, ..] = self.places(f, s);
        let row = self.row("MIXING", (f, s), at, &stage.mixing, COLUMNS);
        let (first, step, axis) = (self.first(f), stage.mixing.step(), stage.explicit());
        let (place, [before, after]) = match transposed {
            false => ("HERE", [step, 2 * step]),
            true => ("MIXED", [4 * step, 5 * step]),
        };
        match stage.plan.explicit {
            Some(_) => format!(
                "mixed({place}, {first}u, j, {axis}u, {row}, {row} + {before}u, {row} + {after}u)"
            ),
            None => format!("mixing({row}) * value_at({place}, {first}u + j)"),
        }
    }

    /// A stage's share of the forcing at a node.
    fn share(&self, f: usize, s: usize) -> String {
        let stage = &self.kernel.stages[f][s];
        let [at, ..] = self.places(f, s);
        let row = self.row("MIXING", (f, s), at, &stage.mixing, COLUMNS);
        format!("mixing({row} + {}u)", 3 * stage.mixing.step())
    }

    /// What comes out of a stage at a node; transposed, from a pull at that.
    fn solved(&self, f: usize, s: usize, transposed: bool) -> String {
        let stage = &self.kernel.stages[f][s];
        let first = self.first(f);
        let place = if transposed { "PULL" } else { "MIXED" };
        if !stage.solved {
            return format!("value_at({place}, {first}u + j)");
        }
        let [_, forward, backward] = self.places(f, s);
        let at = if transposed { backward } else { forward };
        let row = self.row("INVERSE", (f, s), at, &stage.inverse, stage.width);
        let (width, ring, step) = (stage.width, stage.ring, stage.inverse.step());
        let axis = stage.plan.implicit;
        format!("solved({place}, {first}u, j, {axis}u, {width}u, {ring}, {row}, {step}u)")
    }

    /// Fields that have a stage of this number.
    fn having(&self, s: usize) -> Vec<usize> {
        let stages = self.kernel.stages.iter().enumerate();
        stages
            .filter(|(_, stages)| s < stages.len())
            .map(|(f, _)| f)
            .collect()
    }

    fn nodes(&mut self, body: &str) {
        self.line(format!(
            "        for (var j = tid; j < CELLS; j += THREADS) {{\n{body}        }}"
        ));
    }

    fn advance(&mut self) {
        let kernel = self.kernel;
        let split = kernel.split();
        self.line("fn advance(step: u32) {\n    press(step);");
        self.line("    for (var part = 0u; part < SUBSTEPS; part++) {");
        self.line("        let t = moment(step, part);");
        let here = self.state(|f| format!("here({}u + j)", self.first(f)));
        if split {
            let mut body = format!("            let z = grow({here}, j, t);\n");
            for f in 0..kernel.fields() {
                let (first, z) = (self.first(f), self.part("z", f));
                _ = writeln!(body, "            set_here({first}u + j, {z});");
            }
            self.nodes(&body);
            self.line("        barrier();");
        } else {
            // What is `HERE` was written by others; before the first part `press` has waited for it.
            self.line("        if part > 0u { barrier(); }");
        }
        for s in 0..kernel.stage_count() {
            let mut body = String::new();
            let rated = kernel.reacts() && !split && s == 0;
            if rated {
                _ = writeln!(body, "            let rate = rates({here}, j, t);");
            }
            for f in self.having(s) {
                let mut sum = self.mixed(f, s, false);
                let mut forces = Vec::new();
                if let Some(p) = kernel.pushed.iter().position(|&field| field == f) {
                    forces.push(format!("push({}u + j)", p * kernel.nodes()));
                }
                if rated && kernel.system.kit().described[f].reaction.is_some() {
                    forces.push(self.part("rate", f));
                }
                if !forces.is_empty() && kernel.stages[f][s].plan.push != 0.0 {
                    _ = write!(sum, " + {} * ({})", self.share(f, s), forces.join(" + "));
                }
                let first = self.first(f);
                if kernel.slots[first..][..kernel.nodes()]
                    .iter()
                    .any(|&slot| slot > 0)
                {
                    _ = write!(sum, " + edge({first}u, j, step, part, {s}u)");
                }
                _ = writeln!(body, "            set_work({first}u + j, {sum});");
            }
            self.nodes(&body);
            self.line("        barrier();");
            if s + 1 < kernel.stage_count() {
                let mut body = String::new();
                for f in self.having(s) {
                    let (first, solved) = (self.first(f), self.solved(f, s, false));
                    _ = writeln!(body, "            set_here({first}u + j, {solved});");
                }
                self.nodes(&body);
                self.line("        barrier();");
            }
        }
        self.finish();
        self.line("    }\n    barrier();\n}");
    }

    /// The end of a solver step, at every node.
    fn finish(&mut self) {
        let kernel = self.kernel;
        let last = kernel.stage_count() - 1;
        let [middles, ends] = kernel.kept_fields();
        let value = |f: usize| match kernel.stages[f].len() > last {
            true => self.solved(f, last, false),
            false => format!("here({}u + j)", self.first(f)),
        };
        let mut body = format!("            var z = {};\n", self.state(value));
        let each = |f: usize| (self.first(f), self.part("z", f));
        if middles > 0 {
            for (first, z) in (0..kernel.fields()).map(each) {
                _ = writeln!(
                    body,
                    "            states[kept_middle(step, part) + {first}u + j] = {z};"
                );
            }
            body += "            z = grow(z, j, t + 0.5 * SOLVER_DT);\n";
        }
        for (f, field) in kernel.system.fields.iter().enumerate() {
            let (first, z) = each(f);
            if let Some(range) = field.clip {
                let [low, high] = range.map(|x| x as f32);
                _ = writeln!(body, "            {z} = clamp({z}, {low:?}f, {high:?}f);");
            }
            _ = writeln!(body, "            set_here({first}u + j, {z});");
        }
        body += "            if part + 1u == SUBSTEPS {\n";
        for (first, z) in (0..kernel.fields()).map(each) {
            _ = writeln!(
                body,
                "                states[state_of(step + 1u) + {first}u + j] = {z};"
            );
        }
        if ends > 0 {
            body += "            } else {\n";
            for (first, z) in (0..kernel.fields()).map(each) {
                _ = writeln!(
                    body,
                    "                states[kept_end(step, part) + {first}u + j] = {z};"
                );
            }
        }
        body += "            }\n";
        self.nodes(&body);
    }

    fn advance_adjoint(&mut self) {
        let kernel = self.kernel;
        let (split, driven) = (kernel.split(), kernel.system.kit().driven);
        self.line(
            "fn advance_adjoint(step: u32) {
    prepare_kernels(state_of(step));
    let error_share = error_pull(step);
    for (var k = tid; k < VALUES; k += THREADS) {
        let e = root(k) * (states[state_of(step + 1u) + k] - target_at(step + 1u, k));
        set_g_field(k, g_field_at(k) + error_share * root(k) * e);
    }
    for (var j = tid; j < CELLS; j += THREADS) {
        set_push(j, 0.0);
    }
    barrier();
    for (var back = 0u; back < SUBSTEPS; back++) {
        let part = SUBSTEPS - 1u - back;
        let t = moment(step, part);",
        );
        let pulls = self.state(|f| format!("g_field_at({}u + j)", self.first(f)));
        if split || kernel.clips() {
            let mut body = format!("            var g = {pulls};\n");
            for (f, field) in kernel.system.fields.iter().enumerate() {
                if let Some(range) = field.clip {
                    let [low, high] = range.map(|x| x as f32);
                    let (first, g) = (self.first(f), self.part("g", f));
                    _ = writeln!(
                        body,
                        "            let z_{f} = states[after_part(step, part) + {first}u + j];
            {g} = select({g}, 0.0, z_{f} <= {low:?}f || z_{f} >= {high:?}f);"
                    );
                }
            }
            if split {
                let middle = self.kept("kept_middle");
                _ = writeln!(
                    body,
                    "            g = grow_adjoint({middle}, j, t + 0.5 * SOLVER_DT, g);"
                );
            }
            self.pull(&mut body);
            self.nodes(&body);
            self.line("        barrier();");
        }
        for s in (0..kernel.stage_count()).rev() {
            let mut body = String::new();
            for f in self.having(s) {
                let (first, solved) = (self.first(f), self.solved(f, s, true));
                _ = writeln!(body, "            set_work({first}u + j, {solved});");
            }
            self.nodes(&body);
            self.line("        barrier();");
            let mut body = format!("            var g = {pulls};\n");
            for f in self.having(s) {
                let g = self.part("g", f);
                _ = writeln!(body, "            {g} = {};", self.mixed(f, s, true));
                if f == driven && kernel.stages[f][s].plan.push != 0.0 {
                    let (share, first) = (self.share(f, s), self.first(f));
                    _ = writeln!(
                        body,
                        "            set_push(j, push(j) + {share} * work({first}u + j));"
                    );
                }
            }
            if s == 0 && kernel.reacts() {
                let begun = self.kept("before_part");
                if split {
                    _ = writeln!(body, "            g = grow_adjoint({begun}, j, t, g);");
                } else {
                    let pull = self
                        .state(|f| format!("{} * work({}u + j)", self.share(f, 0), self.first(f)));
                    _ = writeln!(
                        body,
                        "            g += rates_adjoint({begun}, j, t, {pull});"
                    );
                }
            }
            self.pull(&mut body);
            self.nodes(&body);
            self.line("        barrier();");
        }
        self.line("    }\n    press_adjoint(step);\n}");
    }

    /// Adds that `g` is what pulls at a node's values.
    fn pull(&self, body: &mut String) {
        for f in 0..self.kernel.fields() {
            let (first, g) = (self.first(f), self.part("g", f));
            _ = writeln!(body, "            set_g_field({first}u + j, {g});");
        }
    }

    /// A node's values of a state that is kept.
    fn kept(&self, state: &str) -> String {
        self.state(|f| format!("states[{state}(step, part) + {}u + j]", self.first(f)))
    }
}
