//! Why bytes are not a usable policy.

use super::FORMAT;
use core::fmt;

/// Why bytes are not a usable policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PolicyError {
    /// Fewer bytes than the blob says it has, or than its prologue needs.
    Truncated {
        /// Bytes needed.
        needed: usize,
        /// Bytes there.
        found: usize,
        /// The first section that is incomplete.
        section: &'static str,
    },
    /// More bytes than the blob says it has.
    TrailingBytes {
        /// Bytes the blob has.
        stated: usize,
        /// Bytes there.
        found: usize,
    },
    /// It does not start with [`MAGIC`](super::MAGIC).
    NotAPolicy,
    /// Written in a format this reader does not know.
    UnknownFormat {
        /// The blob's format.
        found: u32,
    },
    /// The bytes changed since they were written.
    Checksum {
        /// What the blob carries.
        stated: u32,
        /// What its bytes give.
        computed: u32,
    },
    /// The blob does not start on a 4-byte boundary in memory.
    Misaligned,
    /// The header is no postcard header.
    Header,
    /// A field has a value that cannot be run.
    Field {
        /// Its path in the header or prologue.
        name: FieldName,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The weight section has another length than the layers need.
    WeightCount {
        /// Floats the layers need.
        needed: usize,
        /// Floats there.
        found: usize,
    },
    /// A weight is NaN or infinite.
    Weight {
        /// Its index in the weight section.
        index: usize,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated {
                needed,
                found,
                section,
            } => write!(
                f,
                "the policy is cut off in its {section}: {found} of {needed} bytes are there"
            ),
            Self::TrailingBytes { stated, found } => write!(
                f,
                "the policy says it has {stated} bytes but {found} are there"
            ),
            Self::NotAPolicy => {
                f.write_str("this is not a policy: it does not start with SWARMPOL")
            }
            Self::UnknownFormat { found } => write!(
                f,
                "the policy has format {found} and this reader knows formats 1 to {FORMAT}: use a newer reader, or export the policy again with this version's trainer"
            ),
            Self::Checksum { stated, computed } => write!(
                f,
                "the policy is damaged: its checksum is {stated:08x} but its bytes give {computed:08x}"
            ),
            Self::Misaligned => f.write_str("the policy must start on a 4-byte boundary in memory"),
            Self::Header => f.write_str("the policy's header cannot be decoded"),
            Self::Field { name, fault } => write!(f, "the policy's field {name} {fault}"),
            Self::WeightCount { needed, found } => write!(
                f,
                "the policy's layers need {needed} weights but {found} are there"
            ),
            Self::Weight { index } => write!(f, "the policy's weight {index} is not finite"),
        }
    }
}

impl core::error::Error for PolicyError {}

/// A [`PolicyError::Field`], as small as it can be handed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Complaint {
    name: FieldName,
    fault: Fault,
}

impl From<Complaint> for PolicyError {
    fn from(Complaint { name, fault }: Complaint) -> Self {
        Self::field(name, fault)
    }
}

impl PolicyError {
    /// Refuses a field.
    pub(crate) const fn field(name: FieldName, fault: Fault) -> Self {
        Self::Field { name, fault }
    }
}

/// The same where only fields are looked at.
pub(crate) const fn field<T>(name: FieldName, fault: Fault) -> Result<T, Complaint> {
    Err(Complaint { name, fault })
}

/// An enumeration of phrases: a byte each, so that the text is linked only where it is printed.
macro_rules! phrases {
    ($(#[$about:meta])* $name:ident { $($variant:ident: $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum $name {
            $(#[doc = $text] $variant,)*
        }

        impl $name {
            /// The phrase.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

phrases! {
    /// The path of a field in the header or prologue.
    FieldName {
        WeightsOffset: "weights offset",
        TotalLength: "total length",
        HeaderLength: "header length",
        WeightsLength: "weights length",
        ProbeLength: "probe length",
        Workspace: "workspace",
        Axes: "sensing.axes",
        Window: "sensing.window",
        Samples: "sensing.samples",
        Channels: "sensing.channels",
        ErrorLimit: "sensing.error_limit",
        Wide: "sensing.wide",
        Network: "network",
        Convolutions: "network.convolutions",
        Flatten: "network.flatten",
        Branch: "network.branch",
        Frequencies: "network.frequencies",
        Trunk: "network.trunk",
        Fusion: "network.fusion",
        Head: "network.head",
        Encoding: "network.encoding",
        Memory: "network.memory",
        Limits: "limits",
        Force: "limits.force",
        Velocity: "limits.velocity",
        ForceRate: "limits.force_rate",
        VelocityRate: "limits.velocity_rate",
        Growth: "limits.governor.growth",
        Floor: "limits.governor.floor",
        Band: "limits.governor.band",
        Domain: "limits.low, limits.high",
        KeepOut: "limits.keep_out",
        Period: "timing.period_us",
        Late: "timing.late_us",
        ProbePosition: "probe.position",
    }
}

phrases! {
    /// What is wrong with a field.
    Fault {
        NotWords: "is not a multiple of 4",
        Misplaced: "overlaps the header or is not a multiple of 16",
        NotWhereWeightsEnd: "is not where the weights end",
        NotWhereProbeEnds: "is not where the probe ends",
        LongerThanHeader: "is longer than the header",
        NotWhatIsNeeded: "is not what the network needs",
        NotPositive: "must be positive and finite",
        NotFinite: "must be finite",
        Zero: "must not be 0",
        NotOneOrTwo: "must be 1 or 2",
        Width: "must be 1 to 4096",
        WidthInThePlane: "must be 1 to 64 with two axes",
        NotTheWindow: "must equal the window with two axes",
        NoChannel: "must name at least one channel",
        SlopeAlongNoAxis: "has a slope along an axis that is not there",
        CellsAlongNoAxis: "must have 1 cell along the axis that is not there",
        CellsInAll: "must have 1 to 4096 cells in all",
        ErrorsTooLarge: "must be at most 5e15",
        NotOneToTwo: "must be from 1 to 2",
        NotAShare: "must be positive and at most 1",
        NotABand: "must be from 0 to 1, and 0 without a governor",
        NoDomain: "must span a finite domain",
        NeedsThePlane: "needs two axes",
        UnusableDisc: "has a disc that is smaller than a thousandth of the domain's coordinates or than 1e-15, or one of them is beyond 1e18",
        NotBeforeFailSafe: "must be below timing.fail_safe_us",
        FrequencyTooHigh: "must be finite and at most 1e6",
        LayerWidth: "has a layer without outputs or with over 4096",
        NoInputs: "has a layer without inputs",
        LayerInputs: "has a layer whose inputs are not what comes before it",
        UnequalFactors: "multiplies branch and trunk of different lengths",
        NothingToDo: "give the agent neither force nor velocity",
        HeadOutputs: "has not one output per force and velocity component, and two per number of the memory",
        SumsTooLarge: "has weights so large that a sum could pass 1e16",
        NeedsConvolutions: "needs convolutions",
        NeedThePlane: "need two axes",
        NeedF32: "need f32 weights",
        NeedDense: "need a dense layer behind them",
        ConvolutionInputs: "have one whose inputs are not what comes before it",
        ConvolutionOutputs: "have one without outputs or with over 256",
        ConvolutionSteps: "have one whose stride is not 1 or 2 or padding not 0 or 1",
        ConvolutionTooLarge: "have one that is larger than its input",
        Int8Activations: "is int8, for which the last layer must end in its sums and all others in tanh",
        Int8Outputs: "is int8, for which layers must have a multiple of 4 outputs",
        Int8Parts: "is int8, for which branch, trunk and head must have layers",
        Int8Bits: "has inputs of more than 14 bits",
        Int8NotFinite: "has a bias or scale that is not finite",
        Int8Sums: "has sums beyond 24 bits",
        CutOff: "is cut off",
        NoMemory: "must be 1 to 16 numbers with a leak of 0 to 0.5 and a gain of 0 to 1",
    }
}
