// The page of a live run. What it shows comes over one socket, or from a worker of its own: sentences and
// figures as JSON, the field and the agents as binary frames (src/live/frame.rs has the format). What people
// do goes back as commands.
const MODES = ["silent", "waiting", "active", "holding", "failed safe"];
const MOST_POINTS = 4000;
const PATIENCE_S = 60;
function element(id) {
    const found = document.getElementById(id);
    if (!found)
        throw new Error(`the page has no ${id}`);
    return found;
}
/** Half-precision floats by the integers that stand for them. */
const HALVES = (() => {
    const values = new Float32Array(65536);
    for (let code = 0; code < 65536; code++) {
        const bits = code & 0x8000 ? code & 0x7fff : ~code & 0xffff;
        const sign = bits & 0x8000 ? -1 : 1;
        const exponent = (bits >> 10) & 31;
        const fraction = bits & 1023;
        const size = exponent === 0
            ? fraction * 2 ** -24
            : exponent === 31
                ? fraction
                    ? NaN
                    : Infinity
                : (1 + fraction / 1024) * 2 ** (exponent - 15);
        values[code] = sign * size;
    }
    return values;
})();
/** Reads a frame; fields are changes of those before. */
function decode(buffer, before) {
    const bytes = new Uint8Array(buffer);
    const view = new DataView(buffer);
    let at = 0;
    const u16 = () => ((at += 2), view.getUint16(at - 2, true));
    const i16 = () => ((at += 2), view.getInt16(at - 2, true));
    const u32 = () => ((at += 4), view.getUint32(at - 4, true));
    const f32 = () => ((at += 4), view.getFloat32(at - 4, true));
    const version = bytes[at++];
    if (version !== 1)
        throw new Error(`frames of version ${version} are not known here`);
    const take = u32();
    const step = u32();
    const figures = [];
    for (let k = u16(); k > 0; k--)
        figures.push([f32(), f32()]);
    const bodies = [];
    for (let k = u32(); k > 0; k--) {
        const [x, y] = [u16() / 65535, u16() / 65535];
        const [force, vx, vy] = [i16() / 32767, i16() / 32767, i16() / 32767];
        bodies.push({ x, y, force, vx, vy, mode: bytes[at++] ?? 0 });
    }
    const cells = u32();
    const number = () => {
        let value = 0;
        let shift = 0;
        for (;;) {
            const byte = bytes[at++] ?? 0;
            value |= (byte & 0x7f) << shift;
            if (byte < 0x80)
                return value >>> 0;
            shift += 7;
        }
    };
    const changed = (old) => {
        const values = old && old.length === cells ? old.slice() : new Uint16Array(cells);
        for (let k = 0; k < cells;) {
            const coded = number();
            if (coded === 0) {
                k += 1 + number();
            }
            else {
                values[k] = ((values[k] ?? 0) + ((coded >>> 1) ^ -(coded & 1))) & 0xffff;
                k += 1;
            }
        }
        return values;
    };
    const field = changed(before?.field);
    const target = changed(before?.target);
    return { take, step, figures, bodies, field, target };
}
/** A canvas that is as sharp as the screen. */
class Sheet {
    canvas;
    pen;
    width = 0;
    height = 0;
    constructor(id) {
        this.canvas = element(id);
        const pen = this.canvas.getContext("2d");
        if (!pen)
            throw new Error("this browser draws nothing");
        this.pen = pen;
    }
    /** Fits it to its place on the page and wipes it. */
    begin() {
        const ratio = window.devicePixelRatio || 1;
        const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
        const [across, down] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
        if (this.canvas.width !== across || this.canvas.height !== down) {
            this.canvas.width = across;
            this.canvas.height = down;
        }
        this.width = width;
        this.height = height;
        this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
        this.pen.clearRect(0, 0, width, height);
        this.pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    }
}
function ink(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
function short(value) {
    if (!Number.isFinite(value))
        return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e5))
        return value.toExponential(1);
    return String(Number(value.toPrecision(3)));
}
const sheets = {
    field: new Sheet("field"),
    bar: new Sheet("bar"),
    strip: new Sheet("strip"),
    errors: new Sheet("errors"),
    efforts: new Sheet("efforts"),
    patch: new Sheet("patch"),
    features: new Sheet("features"),
    deeds: new Sheet("deeds"),
    memory: new Sheet("memory"),
};
/** Everything that the page knows. */
const known = {
    hello: null,
    state: null,
    frame: null,
    sight: null,
    /** Error and effort of each run by step. */
    figures: new Map(),
    /** What the chosen agent did and remembered, by step. */
    deeds: new Map(),
    memories: new Map(),
    /** Rows of the space-time picture, by step. */
    rows: new Map(),
    take: -1,
    /** Agents that are pointed at. */
    chosen: new Set(),
    tool: "select",
    /** Where the pointer went since it was pressed, as shares of the domain. */
    trace: [],
    /** The way to the run, once there is one. */
    send: null,
    lostAt: 0,
    /** Until when what was last said stays. */
    saidUntil: 0,
    due: false,
    /** Largest value that the colours reach; grows with the field. */
    reach: 1,
};
// ---------------------------------------------------------------- talking
function say(text, bad = false) {
    const status = element("status");
    status.textContent = text;
    status.classList.toggle("bad", bad);
}
function tell(command) {
    known.send?.(JSON.stringify(command));
}
function take(message) {
    if (typeof message === "string")
        hear(JSON.parse(message));
    else
        see(decode(message, known.frame));
    redraw();
}
function connect() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/ws${location.search}`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
        known.lostAt = 0;
        known.frame = null;
        known.send = (text) => socket.send(text);
        say("connected");
        tell({ do: "curves" });
    };
    socket.onmessage = (event) => take(event.data);
    socket.onclose = () => {
        const now = Date.now();
        known.send = null;
        known.lostAt ||= now;
        if (now - known.lostAt > PATIENCE_S * 1000) {
            say("The run has ended, or cannot be reached; load the page again to try once more.", true);
            return;
        }
        say("The connection is lost; trying again …", true);
        setTimeout(connect, 1000);
    };
}
/** Where there is no server the simulator runs beside the page, as the page's address asks. */
function employ() {
    say("loading the simulator …");
    const worker = new Worker(`worker.js${location.search}`, { type: "module" });
    worker.onmessage = (event) => {
        // Not before it has said something: until then nobody listens there.
        known.send ??= (text) => worker.postMessage(text);
        take(event.data);
        // Seen; whoever is not told so sends no more frames.
        worker.postMessage(null);
    };
    worker.onerror = () => {
        known.send = null;
        say("The simulator cannot be run here: this browser, or its host, does not give the page all its files.", true);
    };
}
function hear(told) {
    switch (told.is) {
        case "hello":
            // Frames that follow begin anew.
            known.hello = told;
            known.frame = null;
            introduce(told);
            break;
        case "state":
            known.state = told;
            report(told);
            break;
        case "agent":
            known.sight = told;
            if (known.state)
                known.memories.set(known.state.step, told.memory);
            break;
        case "curves":
            if (told.take !== known.take)
                restartCurves(told.take);
            told.steps.forEach((step, k) => {
                const figures = told.runs.map((run) => run[k]).filter((pair) => pair != null);
                known.figures.set(step, figures);
            });
            break;
        case "refused":
            // Long enough to be read.
            say(told.why, true);
            known.saidUntil = Date.now() + 4000;
            break;
        case "choice":
            offer(told.problems);
            break;
        case "over":
            known.send = null;
            known.saidUntil = Infinity;
            say(told.why, true);
            break;
        case "saved":
            element("saved").textContent = `Saved: ${told.place}. Again: agent-sim run --scenario ${told.place}`;
            download(told.scenario);
            break;
    }
}
function restartCurves(take) {
    known.take = take;
    known.figures.clear();
    known.rows.clear();
    known.deeds.clear();
    known.memories.clear();
}
function see(frame) {
    known.frame = frame;
    if (frame.take !== known.take) {
        restartCurves(frame.take);
        tell({ do: "curves" });
    }
    known.figures.set(frame.step, frame.figures);
    const [only] = known.chosen;
    const body = only === undefined ? undefined : frame.bodies[only];
    if (known.chosen.size === 1 && body)
        known.deeds.set(frame.step, body);
    if (known.hello?.problem.axes === 1)
        known.rows.set(frame.step, frame.field);
    for (const id of known.chosen)
        if (id >= frame.bodies.length)
            known.chosen.delete(id);
    stand();
}
function download(text) {
    const link = document.createElement("a");
    link.href = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
    link.download = "scenario.toml";
    link.click();
}
// ---------------------------------------------------------------- words
function introduce(hello) {
    const { problem } = hello;
    element("problem").value = problem.name;
    document.title = `${problem.name} live`;
    element("title").textContent = problem.title;
    const policy = hello.policy ? `; policy ${hello.policy}` : "";
    element("summary").textContent = `${problem.summary}${policy}`;
    element("strip").hidden = problem.axes !== 1;
    element("memory-figure").hidden = hello.memory === 0;
    known.reach = Math.max(Math.abs(hello.scale.low), Math.abs(hello.scale.high));
    const legend = element("legend");
    legend.replaceChildren();
    for (const run of hello.runs) {
        const swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.background = run.colour;
        legend.append(swatch, run.name);
    }
    const fault = element("fault");
    if (fault.options.length !== hello.faults.length) {
        fault.replaceChildren(...hello.faults.map((kind) => new Option(kind.name, kind.name)));
        askParameters();
    }
    const onBoards = hello.boards > 0;
    for (const control of document.querySelectorAll("#transport *, #hands *, #undo, #save, #tools *"))
        control.disabled = !hello.hands;
    if (!hello.hands)
        return;
    for (const id of ["stick", "blind", "delay", "undo", "restart", "seed", "keep"])
        element(id).disabled = onBoards;
    for (const tool of document.querySelectorAll("[data-tool]")) {
        const name = tool.dataset["tool"];
        tool.hidden = (name === "target" && !problem.tracking) || ((name === "up" || name === "down") && problem.stirs);
        if (onBoards && name !== "select")
            tool.hidden = true;
    }
}
/** Offers other runs than the one that the page's address asks for. */
function offer(problems) {
    const asked = new URLSearchParams(location.search);
    const problem = element("problem");
    problem.replaceChildren(...problems.map((name) => new Option(name)));
    element("agents").value = asked.get("agents") ?? "";
    element("choice").hidden = false;
}
function askParameters() {
    const kind = chosenFault();
    const room = element("parameters");
    room.replaceChildren();
    if (!kind)
        return;
    element("help").textContent = kind.help;
    for (const parameter of kind.parameters) {
        const label = document.createElement("label");
        const input = document.createElement("input");
        input.name = parameter.name;
        input.size = 6;
        input.value = parameter.needed ? parameter.example : "";
        input.placeholder = parameter.example;
        label.append(`${parameter.name} `, input);
        room.append(label);
    }
}
function chosenFault() {
    const name = element("fault").value;
    return known.hello?.faults.find((kind) => kind.name === name);
}
function report(state) {
    element("play").textContent = state.playing ? "Pause" : "Play";
    const seek = element("seek");
    seek.max = String(state.steps);
    if (document.activeElement !== seek)
        seek.value = String(state.step);
    element("clock").textContent = `${state.step} of ${state.steps}`;
    const seed = element("seed");
    if (document.activeElement !== seed && seed.dataset["of"] !== String(state.seed)) {
        seed.value = String(state.seed);
        seed.dataset["of"] = String(state.seed);
    }
    const speed = element("speed");
    const asked = state.speed === null ? "full" : String(state.speed);
    if (document.activeElement !== speed) {
        if (![...speed.options].some((option) => option.value === asked))
            speed.prepend(new Option(`${short(Number(asked))} steps/s`, asked));
        speed.value = asked;
    }
    element("agent").max = String(state.agents - 1);
    element("undo").disabled = state.undoable === 0;
    const events = [...state.faults.filter(givenBefore).map((f) => [f.step, f.what]), ...state.events];
    const key = JSON.stringify(events);
    const list = element("events");
    if (list.dataset["key"] !== key) {
        list.dataset["key"] = key;
        list.replaceChildren(...events.map(([step, what]) => {
            const item = document.createElement("li");
            item.textContent = `step ${step}: ${what}`;
            return item;
        }));
    }
    stand();
    const boards = element("boards");
    boards.hidden = !state.boards?.length;
    if (state.boards) {
        const rows = state.boards.map((board) => {
            const row = document.createElement("tr");
            const restarts = board.restarts ? `${board.restarts} restarts` : "";
            for (const text of [board.name, board.state, restarts]) {
                const cell = document.createElement("td");
                cell.textContent = text;
                row.append(cell);
            }
            return row;
        });
        boards.querySelector("tbody")?.replaceChildren(...rows);
    }
}
/** Says where the run stands, once both the words and the picture of that step are there. */
function stand() {
    const { state, frame } = known;
    if (!state || frame?.step !== state.step || frame.take !== state.take || Date.now() < known.saidUntil)
        return;
    if (state.ended)
        return say(state.ended, true);
    if (state.fingerprint && state.step === state.steps)
        return say(`The end. Fingerprint ${state.fingerprint}.`);
    const silent = frame.step > 0 ? frame.bodies.filter((body) => body.mode === 0).length : 0;
    const quiet = silent > 0 ? `, ${silent} silent` : "";
    say(`step ${state.step}: ${state.agents} agents${quiet}, error ${short(frame.figures[0]?.[0] ?? NaN)}`);
}
/** Faults that were there before anybody did anything: the others are told by what was done. */
function givenBefore(fault) {
    return !/[,]ids=/.test(fault.text);
}
// ---------------------------------------------------------------- pictures
function redraw() {
    if (known.due)
        return;
    known.due = true;
    requestAnimationFrame(() => {
        known.due = false;
        draw();
    });
}
function colour(value, hello) {
    const { low, high, colours } = hello.scale;
    const [from, to] = low < 0 ? [-known.reach, known.reach] : [0, known.reach];
    const share = Math.min(1, Math.max(0, (value - from) / (to - from || high || 1)));
    const k = 3 * Math.round(share * (colours.length / 3 - 1));
    return [colours[k] ?? 0, colours[k + 1] ?? 0, colours[k + 2] ?? 0];
}
/** Values as an image, rows from the top. */
function image(width, height, value, hello) {
    const data = new ImageData(width, height);
    for (let row = 0, k = 0; row < height; row++) {
        for (let column = 0; column < width; column++, k += 4) {
            const [r, g, b] = colour(value(column, row), hello);
            data.data[k] = r;
            data.data[k + 1] = g;
            data.data[k + 2] = b;
            data.data[k + 3] = 255;
        }
    }
    return data;
}
const easel = document.createElement("canvas");
function paint(sheet, picture, x, y, width, height, smooth) {
    easel.width = picture.width;
    easel.height = picture.height;
    easel.getContext("2d")?.putImageData(picture, 0, 0);
    sheet.pen.imageSmoothingEnabled = smooth;
    sheet.pen.drawImage(easel, x, y, width, height);
}
function draw() {
    const { hello, frame } = known;
    if (!hello)
        return;
    if (frame) {
        // Colours keep up with a field that grows, and never shrink: pictures stay comparable.
        let most = 0;
        for (const code of frame.field)
            most = Math.max(most, Math.abs(HALVES[code] ?? 0));
        known.reach = Math.max(known.reach, Math.min(most * hello.scale.unit, 1e30));
        if (hello.problem.axes === 1)
            drawLine(hello, frame);
        else
            drawPlane(hello, frame);
    }
    drawBar(hello);
    drawCurves(sheets.errors, 0, hello);
    drawCurves(sheets.efforts, 1, hello);
    drawAgent(hello);
}
/** The first axis goes to the right, the second upwards, as in reports. */
function drawPlane(hello, frame) {
    const sheet = sheets.field;
    const { problem } = hello;
    const extent = [0, 1].map((axis) => (problem.high[axis] ?? 1) - (problem.low[axis] ?? 0));
    element("picture").style.setProperty("--ratio", String((extent[0] ?? 1) / (extent[1] ?? 1)));
    sheet.begin();
    const [across, up] = problem.shape;
    const value = (column, row) => (HALVES[frame.field[column * up + (up - 1 - row)] ?? 0] ?? 0) * hello.scale.unit;
    paint(sheet, image(across, up, value, hello), 0, 0, sheet.width, sheet.height, true);
    sheet.pen.strokeStyle = ink("--ink");
    for (const [x, y, radius] of problem.keepOut) {
        const place = onPlane(hello, x, y);
        sheet.pen.beginPath();
        sheet.pen.setLineDash([4, 3]);
        sheet.pen.arc(place[0], place[1], (radius / (extent[0] ?? 1)) * sheet.width, 0, 7);
        sheet.pen.stroke();
        sheet.pen.setLineDash([]);
    }
    const size = Math.max(3, Math.min(9, (0.35 * sheet.width) / Math.sqrt(frame.bodies.length || 1) / 2));
    frame.bodies.forEach((body, id) => {
        const x = body.x * sheet.width;
        const y = (1 - body.y) * sheet.height;
        drawBody(sheet, body, id, x, y, size);
    });
    drawTrace(sheet);
}
function onPlane(hello, x, y) {
    const { low, high } = hello.problem;
    const sheet = sheets.field;
    return [((x - low[0]) / (high[0] - low[0])) * sheet.width, (1 - (y - low[1]) / (high[1] - low[1])) * sheet.height];
}
/** An agent: what it is doing can be told by its shape, without colours. */
function drawBody(sheet, body, id, x, y, size) {
    const { pen } = sheet;
    const chosen = known.chosen.has(id);
    const started = (known.frame?.step ?? 0) > 0;
    pen.lineWidth = 1.5;
    pen.strokeStyle = "#000000";
    if (known.hello && known.hello.problem.speedMax > 0 && body.mode !== 0) {
        pen.beginPath();
        pen.moveTo(x, y);
        pen.lineTo(x + 3 * size * body.vx, known.hello.problem.axes === 1 ? y : y - 3 * size * body.vy);
        pen.stroke();
    }
    pen.beginPath();
    if (body.mode === 0 && started) {
        for (const side of [-1, 1]) {
            pen.moveTo(x - size, y - side * size);
            pen.lineTo(x + size, y + side * size);
        }
        pen.strokeStyle = "#ffffff";
        pen.lineWidth = 4;
        pen.stroke();
        pen.strokeStyle = "#000000";
        pen.lineWidth = 2;
        pen.stroke();
    }
    else {
        if (body.mode === 4)
            pen.rect(x - size, y - size, 2 * size, 2 * size);
        else
            pen.arc(x, y, size, 0, 7);
        pen.fillStyle = body.mode === 3 || body.mode === 4 ? "#ffb000" : "#ffffff";
        pen.fill();
        pen.stroke();
        // A disc within that grows with the force: black pushes up, hollow pushes down.
        const inner = size * Math.sqrt(Math.abs(body.force)) * 0.8;
        pen.beginPath();
        pen.arc(x, y, inner, 0, 7);
        if (body.force > 0) {
            pen.fillStyle = "#000000";
            pen.fill();
        }
        else if (body.force < 0)
            pen.stroke();
    }
    if (chosen) {
        pen.beginPath();
        pen.lineWidth = 3;
        pen.strokeStyle = ink("--accent");
        pen.arc(x, y, size + 4, 0, 7);
        pen.stroke();
    }
}
function drawTrace(sheet) {
    if (known.trace.length < 2)
        return;
    const { pen } = sheet;
    pen.beginPath();
    known.trace.forEach(([x, y], k) => {
        const at = [x * sheet.width, (1 - y) * sheet.height];
        if (k === 0)
            pen.moveTo(...at);
        else
            pen.lineTo(...at);
    });
    pen.strokeStyle = ink("--accent");
    pen.lineWidth = 2;
    pen.setLineDash(known.tool === "select" ? [5, 4] : []);
    pen.stroke();
    pen.setLineDash([]);
}
const MARGIN = 18;
function lineY(value, hello) {
    const [low, high] = hello.scale.low < 0 ? [-known.reach, known.reach] : [-0.05 * known.reach, 1.05 * known.reach];
    const sheet = sheets.field;
    return sheet.height - MARGIN - ((value - low) / (high - low)) * (sheet.height - 2 * MARGIN);
}
function lineValue(share, hello) {
    const [low, high] = hello.scale.low < 0 ? [-known.reach, known.reach] : [-0.05 * known.reach, 1.05 * known.reach];
    const sheet = sheets.field;
    const y = (1 - share) * sheet.height;
    return low + ((sheet.height - MARGIN - y) / (sheet.height - 2 * MARGIN)) * (high - low);
}
function drawLine(hello, frame) {
    const sheet = sheets.field;
    element("picture").style.setProperty("--ratio", "2");
    sheet.begin();
    const { pen } = sheet;
    const cells = frame.field.length;
    const curve = (codes, style, dash) => {
        pen.beginPath();
        codes.forEach((code, k) => {
            const x = (k / (cells - 1)) * sheet.width;
            const y = lineY((HALVES[code] ?? 0) * hello.scale.unit, hello);
            if (k === 0)
                pen.moveTo(x, y);
            else
                pen.lineTo(x, y);
        });
        pen.setLineDash(dash);
        pen.strokeStyle = style;
        pen.lineWidth = 2;
        pen.stroke();
        pen.setLineDash([]);
    };
    pen.strokeStyle = ink("--line");
    pen.fillStyle = ink("--faint");
    for (const value of [hello.scale.low < 0 ? -known.reach : 0, 0, known.reach]) {
        const y = lineY(value, hello);
        pen.lineWidth = 1;
        pen.beginPath();
        pen.moveTo(0, y);
        pen.lineTo(sheet.width, y);
        pen.stroke();
        pen.fillText(short(value), 3, y - 3);
    }
    if (hello.problem.tracking)
        curve(frame.target, ink("--faint"), [6, 4]);
    curve(frame.field, hello.runs[0]?.colour ?? ink("--ink"), []);
    frame.bodies.forEach((body, id) => {
        const x = body.x * sheet.width;
        const code = frame.field[Math.round(body.x * (cells - 1))] ?? 0;
        drawBody(sheet, body, id, x, lineY((HALVES[code] ?? 0) * hello.scale.unit, hello), frame.bodies.length > 64 ? 3 : 6);
    });
    drawTrace(sheet);
    drawStrip(hello, cells);
}
/** The field over space (to the right) and time (downwards), as far as this page has seen it. */
function drawStrip(hello, cells) {
    const sheet = sheets.strip;
    sheet.begin();
    const rows = Math.max(1, Math.min(200, hello.steps + 1));
    let last = null;
    const lines = [];
    const shown = known.state?.head ?? 0;
    for (let row = 0; row < rows; row++) {
        const first = Math.floor((row * (hello.steps + 1)) / rows);
        const next = Math.max(first + 1, Math.floor(((row + 1) * (hello.steps + 1)) / rows));
        for (let step = first; step < next; step++)
            last = known.rows.get(step) ?? last;
        lines.push(first <= shown ? last : null);
    }
    const filled = lines.filter((line) => line !== null).length;
    if (filled === 0)
        return;
    const value = (column, row) => (HALVES[lines[row]?.[column] ?? 0x8000] ?? 0) * hello.scale.unit;
    paint(sheet, image(cells, filled, value, hello), 0, 0, sheet.width, (sheet.height * filled) / rows, false);
    const y = ((known.frame?.step ?? 0) / (hello.steps + 1)) * sheet.height;
    sheet.pen.strokeStyle = ink("--ink");
    sheet.pen.lineWidth = 1;
    sheet.pen.beginPath();
    sheet.pen.moveTo(0, y);
    sheet.pen.lineTo(sheet.width, y);
    sheet.pen.stroke();
}
function drawBar(hello) {
    const sheet = sheets.bar;
    sheet.begin();
    const [low, high] = hello.scale.low < 0 ? [-known.reach, known.reach] : [0, known.reach];
    const value = (_, row) => high - ((high - low) * row) / 99;
    paint(sheet, image(1, 100, value, hello), 0, 8, 14, sheet.height - 16, true);
    sheet.pen.fillStyle = ink("--ink");
    for (const [share, number] of [
        [0, high],
        [0.5, (high + low) / 2],
        [1, low],
    ])
        sheet.pen.fillText(short(number), 18, 12 + share * (sheet.height - 16));
}
/** Curves over the steps of the run, on a logarithmic scale. */
function drawCurves(sheet, which, hello) {
    sheet.begin();
    const { pen } = sheet;
    const steps = [...known.figures.keys()].sort((a, b) => a - b);
    const shown = which === 1 ? steps.filter((step) => step > 0) : steps;
    const values = [];
    for (const step of shown)
        for (const pair of known.figures.get(step) ?? []) {
            const value = pair[which];
            if (value > 0 && Number.isFinite(value))
                values.push(value);
        }
    if (values.length === 0)
        return;
    const top = Math.ceil(Math.log10(values.reduce((a, b) => Math.max(a, b))) + 1e-9);
    const least = Math.floor(Math.log10(values.reduce((a, b) => Math.min(a, b))));
    const bottom = Math.min(top - 1, Math.max(least, top - (which === 1 ? 6 : 12)));
    const left = 44;
    const x = (step) => left + (step / hello.steps) * (sheet.width - left - 6);
    const y = (value) => {
        const share = (Math.log10(Math.max(value, 1e-30)) - bottom) / (top - bottom);
        return sheet.height - 14 - Math.min(1, Math.max(0, share)) * (sheet.height - 22);
    };
    pen.lineWidth = 1;
    pen.fillStyle = ink("--faint");
    pen.strokeStyle = ink("--line");
    const stride = Math.max(1, Math.ceil((top - bottom) / 5));
    for (let decade = bottom; decade <= top; decade += stride) {
        const at = y(10 ** decade);
        pen.beginPath();
        pen.moveTo(left, at);
        pen.lineTo(sheet.width, at);
        pen.stroke();
        pen.fillText(`1e${decade}`, 2, at + 4);
    }
    for (const [step] of known.state?.events ?? []) {
        pen.strokeStyle = ink("--bad");
        pen.setLineDash([2, 3]);
        pen.beginPath();
        pen.moveTo(x(step), 4);
        pen.lineTo(x(step), sheet.height - 14);
        pen.stroke();
        pen.setLineDash([]);
    }
    // The run itself comes last, on top.
    for (let run = hello.runs.length - 1; run >= 0; run--) {
        pen.beginPath();
        let begun = false;
        for (const step of shown) {
            const value = known.figures.get(step)?.[run]?.[which];
            if (value === undefined || !(value > 0))
                continue;
            if (begun)
                pen.lineTo(x(step), y(value));
            else
                pen.moveTo(x(step), y(value));
            begun = true;
        }
        pen.strokeStyle = hello.runs[run]?.colour ?? ink("--ink");
        pen.lineWidth = run === 0 ? 2.5 : 1.5;
        pen.stroke();
    }
    const now = known.frame?.step ?? 0;
    pen.strokeStyle = ink("--ink");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x(now), 4);
    pen.lineTo(x(now), sheet.height - 14);
    pen.stroke();
    if (known.figures.size > MOST_POINTS)
        for (const step of steps)
            if (step % 2 === 1)
                known.figures.delete(step);
}
function drawAgent(hello) {
    const panel = element("inspect");
    const [only] = known.chosen;
    const body = only === undefined || known.chosen.size !== 1 ? undefined : known.frame?.bodies[only];
    panel.hidden = !body;
    if (!body || only === undefined)
        return;
    const { problem } = hello;
    element("who").textContent = `Agent ${only}`;
    const place = [body.x, body.y]
        .slice(0, problem.axes)
        .map((share, axis) => short((problem.low[axis] ?? 0) + share * ((problem.high[axis] ?? 1) - (problem.low[axis] ?? 0))));
    const facts = [
        ["state", MODES[body.mode] ?? "?"],
        ["at", place.join(", ")],
        ["force", short(body.force * problem.forceMax)],
        [
            "velocity",
            [body.vx, body.vy]
                .slice(0, problem.axes)
                .map((v) => short(v * problem.speedMax))
                .join(", "),
        ],
    ];
    const list = element("facts");
    list.replaceChildren(...facts.flatMap(([name, text]) => {
        const [term, detail] = [document.createElement("dt"), document.createElement("dd")];
        term.textContent = name;
        detail.textContent = text;
        return [term, detail];
    }));
    const sight = known.sight?.agent === only ? known.sight : null;
    drawPatch(sight, hello);
    drawFeatures(sight);
    drawOverTime(sheets.deeds, [...known.deeds].map(([step, deed]) => [step, [deed.force, deed.vx, deed.vy]]), hello);
    drawOverTime(sheets.memory, [...known.memories].map(([step, memory]) => [step, memory.map((m) => m ?? 0)]), hello);
}
function drawPatch(sight, hello) {
    const sheet = sheets.patch;
    sheet.begin();
    if (!sight)
        return note(sheet, "on the next step");
    const side = sight.side;
    if (sight.axes === 2) {
        const value = (column, row) => sight.field[column * side + (side - 1 - row)] ?? NaN;
        const size = Math.min(sheet.width, sheet.height);
        paint(sheet, image(side, side, value, hello), (sheet.width - size) / 2, 0, size, size, false);
        return;
    }
    plotLines(sheet, [sight.target, sight.field], [ink("--faint"), hello.runs[0]?.colour ?? ink("--ink")]);
}
function drawFeatures(sight) {
    const sheet = sheets.features;
    sheet.begin();
    if (!sight)
        return note(sheet, "on the next step");
    element("features-name").textContent = `Features: ${sight.channels.join(", ")}`;
    if (sight.features.length === 0)
        return note(sheet, "not valid");
    plotLines(sheet, [sight.features], [ink("--ink")]);
}
function note(sheet, text) {
    sheet.pen.fillStyle = ink("--faint");
    sheet.pen.fillText(text, 6, sheet.height / 2);
}
/** A few rows of numbers on a common scale around zero. */
function plotLines(sheet, rows, styles) {
    const { pen } = sheet;
    const all = rows.flat().map((v) => Math.abs(v ?? 0));
    const most = all.reduce((a, b) => Math.max(a, b), 1e-12);
    const y = (value) => sheet.height / 2 - (value / most) * (sheet.height / 2 - 8);
    pen.strokeStyle = ink("--line");
    pen.beginPath();
    pen.moveTo(0, y(0));
    pen.lineTo(sheet.width, y(0));
    pen.stroke();
    rows.forEach((row, r) => {
        pen.beginPath();
        row.forEach((value, k) => {
            const at = [(k / Math.max(1, row.length - 1)) * sheet.width, y(value ?? 0)];
            if (k === 0)
                pen.moveTo(...at);
            else
                pen.lineTo(...at);
        });
        pen.strokeStyle = styles[r] ?? ink("--ink");
        pen.lineWidth = 1.5;
        pen.stroke();
    });
    pen.fillStyle = ink("--faint");
    pen.fillText(`±${short(most)}`, 3, 12);
}
function drawOverTime(sheet, series, hello) {
    sheet.begin();
    if (series.length === 0)
        return note(sheet, "on the next step");
    series.sort((a, b) => a[0] - b[0]);
    const { pen } = sheet;
    const most = series.reduce((m, [, values]) => values.reduce((n, v) => Math.max(n, Math.abs(v)), m), 1e-6);
    const styles = [ink("--accent"), "#e69f00", "#009e73", "#cc79a7", ink("--ink")];
    const y = (value) => sheet.height / 2 - (value / most) * (sheet.height / 2 - 8);
    const count = series[0]?.[1].length ?? 0;
    for (let k = 0; k < count; k++) {
        pen.beginPath();
        series.forEach(([step, values], i) => {
            const at = [(step / hello.steps) * sheet.width, y(values[k] ?? 0)];
            if (i === 0)
                pen.moveTo(...at);
            else
                pen.lineTo(...at);
        });
        pen.strokeStyle = styles[k % styles.length] ?? ink("--ink");
        pen.lineWidth = 1.5;
        pen.stroke();
    }
    pen.fillStyle = ink("--faint");
    pen.fillText(`±${short(most)}`, 3, 12);
}
// ---------------------------------------------------------------- hands
function choose(ids) {
    known.chosen = new Set(ids);
    known.deeds.clear();
    known.memories.clear();
    known.sight = null;
    const few = [...known.chosen].sort((a, b) => a - b);
    const input = element("agent");
    if (document.activeElement !== input)
        input.value = few.length === 1 ? String(few[0]) : "";
    element("chosen").textContent =
        few.length === 0
            ? "Click one, or draw around several."
            : few.length === 1
                ? ""
                : `${few.length} agents: ${few.slice(0, 12).join(", ")}${few.length > 12 ? " …" : ""}`;
    tell({ do: "select", agent: few.length === 1 ? few[0] : null });
    redraw();
}
function inflict(fault) {
    tell({ do: "fault", fault, ids: [...known.chosen] });
}
function share(event) {
    const box = sheets.field.canvas.getBoundingClientRect();
    const clamp = (value) => Math.min(1, Math.max(0, value));
    return [clamp((event.clientX - box.left) / box.width), clamp(1 - (event.clientY - box.top) / box.height)];
}
function place([x, y], hello) {
    const { low, high, axes } = hello.problem;
    return [x, y].slice(0, axes).map((s, axis) => (low[axis] ?? 0) + s * ((high[axis] ?? 1) - (low[axis] ?? 0)));
}
/** Where an agent is drawn, as shares of the picture. */
function drawnAt(body, hello) {
    if (hello.problem.axes === 2)
        return [body.x, body.y];
    const field = known.frame?.field;
    const code = field?.[Math.round(body.x * (field.length - 1))] ?? 0;
    const y = lineY((HALVES[code] ?? 0) * hello.scale.unit, hello);
    return [body.x, 1 - y / sheets.field.height];
}
function pressed(event) {
    sheets.field.canvas.setPointerCapture(event.pointerId);
    known.trace = [share(event)];
}
function moved(event) {
    if (known.trace.length === 0)
        return;
    if (known.trace.length < 500)
        known.trace.push(share(event));
    redraw();
}
function released(event) {
    const { hello, frame } = known;
    const trace = known.trace;
    known.trace = [];
    const first = trace[0];
    if (!hello || !frame || !first)
        return;
    const last = share(event);
    const far = trace.reduce((most, [x, y]) => Math.max(most, Math.hypot(x - first[0], y - first[1])), 0);
    if (known.tool === "add") {
        tell({ do: "add", place: place(last, hello) });
    }
    else if (known.tool === "select") {
        const where = frame.bodies.map((body) => drawnAt(body, hello));
        if (far > 0.02 && trace.length > 2) {
            const inside = where.flatMap((point, id) => (within(point, trace) ? [id] : []));
            choose(event.shiftKey ? [...known.chosen, ...inside] : inside);
        }
        else {
            choose(nearest(where, last, event.shiftKey));
        }
    }
    else
        stroke(trace, hello);
    redraw();
}
function nearest(where, [x, y], more) {
    const sheet = sheets.field;
    let best = -1;
    let least = 24;
    where.forEach(([ax, ay], id) => {
        const distance = Math.hypot((ax - x) * sheet.width, (ay - y) * sheet.height);
        if (distance < least)
            [best, least] = [id, distance];
    });
    if (best < 0)
        return more ? [...known.chosen] : [];
    return more ? [...known.chosen, best] : [best];
}
/** Whether a point lies within what was drawn around. */
function within([x, y], trace) {
    let inside = false;
    for (let i = 0, j = trace.length - 1; i < trace.length; j = i++) {
        const [[xi, yi], [xj, yj]] = [trace[i] ?? [0, 0], trace[j] ?? [0, 0]];
        if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi)
            inside = !inside;
    }
    return inside;
}
/** A stroke of the brush becomes a few bumps along it. */
function stroke(trace, hello) {
    const { problem } = hello;
    const extent = problem.high[0] - problem.low[0];
    const radius = Math.max(problem.width, 0.04 * extent);
    const apart = (1.5 * radius) / extent;
    const spots = [];
    for (const spot of trace) {
        const close = spots.some(([x, y]) => Math.hypot(x - spot[0], problem.axes === 1 ? 0 : y - spot[1]) < apart);
        if (!close && spots.length < 32)
            spots.push(spot);
    }
    const size = 0.5 * known.reach;
    if (known.tool === "target") {
        // Dragged on a line the target goes where the pointer was; on a plane it rises.
        const to = spots.map((spot) => {
            if (problem.axes === 2)
                return size;
            const target = known.frame?.target;
            const code = target?.[Math.round(spot[0] * (target.length - 1))] ?? 0x8000;
            return lineValue(spot[1], hello) - (HALVES[code] ?? 0) * hello.scale.unit;
        });
        const amount = to.reduce((a, b) => a + b, 0) / Math.max(1, to.length);
        tell({ do: "paint", what: "target", places: spots.map((s) => place(s, hello)), radius, amount, steps: null });
        return;
    }
    const amount = known.tool === "up" ? size : -size;
    const steps = Math.max(1, Math.round(0.02 * hello.steps));
    tell({ do: "paint", what: "push", places: spots.map((s) => place(s, hello)), radius, amount, steps });
}
function takeUp(tool) {
    known.tool = tool;
    for (const button of document.querySelectorAll("[data-tool]"))
        button.setAttribute("aria-checked", String(button.dataset["tool"] === tool));
}
function toggle() {
    tell({ do: known.state?.playing ? "pause" : "play" });
}
function stepBy(steps) {
    const { state } = known;
    if (!state)
        return;
    if (steps === 1)
        tell({ do: "step" });
    else
        tell({ do: "seek", step: Math.max(0, state.step + steps) });
}
function onClick(id, action) {
    element(id).addEventListener("click", action);
}
function kill() {
    inflict(known.hello?.boards ? "kill" : "crash");
}
function wire() {
    const speeds = [
        ["1", "1 step/s"],
        ["5", "5 steps/s"],
        ["15", "15 steps/s"],
        ["30", "30 steps/s"],
        ["60", "60 steps/s"],
        ["200", "200 steps/s"],
        ["full", "full speed"],
    ];
    const speed = element("speed");
    speed.replaceChildren(...speeds.map(([value, text]) => new Option(text, value)));
    speed.addEventListener("change", () => {
        tell({ do: "speed", steps: speed.value === "full" ? null : Number(speed.value) });
        speed.blur();
    });
    onClick("play", toggle);
    onClick("back", () => stepBy(-1));
    onClick("forward", () => stepBy(1));
    const seek = element("seek");
    seek.addEventListener("input", () => tell({ do: "seek", step: Number(seek.value) }));
    seek.addEventListener("change", () => seek.blur());
    onClick("restart", () => {
        const seed = element("seed");
        if (!seed.checkValidity() || seed.value === "")
            return say("A seed is a whole number, 0 or more.", true);
        const changed = Number(seed.value) !== known.state?.seed;
        const keep = element("keep").checked;
        tell({ do: "restart", seed: changed ? Number(seed.value) : null, keep });
        tell({ do: "play" });
    });
    onClick("kill", kill);
    onClick("stick", () => inflict("stuck"));
    onClick("blind", () => inflict("dropout,p=1"));
    onClick("delay", () => inflict("delay,steps=5"));
    onClick("revive", () => tell({ do: "revive", ids: [...known.chosen] }));
    onClick("undo", () => tell({ do: "undo" }));
    onClick("save", () => tell({ do: "save" }));
    element("fault").addEventListener("change", askParameters);
    onClick("inflict", () => {
        const kind = chosenFault();
        if (!kind)
            return;
        const given = [...element("parameters").querySelectorAll("input")]
            .filter((input) => input.value.trim() !== "")
            .map((input) => `,${input.name}=${input.value.trim()}`);
        inflict(kind.name + given.join(""));
    });
    const agent = element("agent");
    agent.addEventListener("change", () => choose(agent.value === "" ? [] : [Number(agent.value)]));
    for (const button of document.querySelectorAll("[data-tool]"))
        button.addEventListener("click", () => takeUp(button.dataset["tool"] ?? "select"));
    const canvas = sheets.field.canvas;
    canvas.addEventListener("pointerdown", pressed);
    canvas.addEventListener("pointermove", moved);
    canvas.addEventListener("pointerup", released);
    canvas.addEventListener("pointercancel", () => (known.trace = []));
    document.addEventListener("keydown", (event) => {
        const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
        if (typing || event.ctrlKey || event.metaKey || event.altKey)
            return;
        const keys = {
            ArrowRight: () => stepBy(1),
            ArrowLeft: () => stepBy(-1),
            k: kill,
            r: () => tell({ do: "revive", ids: [...known.chosen] }),
            u: () => tell({ do: "undo" }),
            s: () => tell({ do: "save" }),
        };
        // Space presses the button that has the focus, if one has.
        if (!(event.target instanceof HTMLButtonElement))
            keys[" "] = toggle;
        const action = keys[event.key];
        if (!action)
            return;
        event.preventDefault();
        action();
    });
    new ResizeObserver(redraw).observe(document.body);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
wire();
if (document.documentElement.dataset["engine"] === "worker")
    employ();
else
    connect();
export {};
