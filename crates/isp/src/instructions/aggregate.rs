//! Counts, sums, minima, maxima and means of the fields of records, by groups.

mod accumulated;
mod key;
mod sum;

use super::{Answer, Kind, Report};
use crate::engine::{Charge, Start};
use crate::outcome::Failure;
use crate::records::{Cell, Condition, Decoder, Format, Table, held_bytes, is_made_quickly};
use crate::scan::{Begin, Finished, Flow, Head, Operation, Role, StepTime, Unit, View};
use crate::text::Keys;
use accumulated::Accumulated;
use hashbrown::HashMap;
use serde::Serialize;
use serde_json::Value;

/// Memory of a group and of each of its computations, besides the bytes of its key. The exact sum of
/// numbers of very different sizes takes more, up to 550 bytes.
const GROUP_BYTES: usize = 160;
const COMPUTE_BYTES: usize = 160;

/// Function of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compute {
    /// Number of records that have the field.
    Count,
    /// Sum of the numbers.
    Sum,
    /// Smallest number.
    Min,
    /// Largest number.
    Max,
    /// Mean of the numbers.
    Mean,
}

impl Compute {
    const NAMES: [(&'static str, Self); 5] = [
        ("count", Self::Count),
        ("sum", Self::Sum),
        ("min", Self::Min),
        ("max", Self::Max),
        ("mean", Self::Mean),
    ];
}

/// Computes functions of fields of the records that meet all conditions, for each group of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Aggregate {
    /// Functions and their fields.
    pub compute: Vec<(Compute, String)>,
    /// Fields by which records are grouped.
    pub by: Vec<String>,
    /// Format of the records.
    pub format: Format,
    /// Conditions.
    pub conditions: Vec<Condition>,
}

/// Results of `Aggregate`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AggregateAnswer {
    /// Groups, in the order of their first records. Without `by`, there is one group.
    pub groups: Vec<GroupAnswer>,
    /// Number of lines that are not JSON objects.
    pub invalid: u64,
}

/// Results of one group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GroupAnswer {
    /// Texts of the fields that define the group, or null if the records do not have the field.
    pub by: Vec<Value>,
    /// Number of records.
    pub records: u64,
    /// Results of the functions, in the order of the instruction. A function without a number is null, and
    /// so is a sum beyond the largest floating-point number.
    pub values: Vec<Value>,
}

impl Report for AggregateAnswer {
    fn bytes(&self) -> usize {
        let bytes = |group: &GroupAnswer| {
            let texts: usize = group.by.iter().filter_map(Value::as_str).map(str::len).sum();
            size_of::<GroupAnswer>() + (group.by.len() + group.values.len()) * size_of::<Value>() + texts
        };
        self.groups.iter().map(bytes).sum()
    }
}

impl Kind for Aggregate {
    const NAME: &'static str = "aggregate";

    fn parse(value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure> {
        let form = || {
            let names = Compute::NAMES.map(|(name, _)| name).join(", ");
            Failure::invalid(format!(
                "\"aggregate\" is a list of functions with fields, such as [{{\"sum\": \"size\"}}]; the functions \
                 are {names}"
            ))
        };
        let parse = |item: &Value| {
            let object = item.as_object().filter(|object| object.len() == 1).ok_or_else(form)?;
            let (name, field) = object.iter().next().ok_or_else(form)?;
            let (_, compute) =
                Compute::NAMES.into_iter().find(|(known, _)| known == name).ok_or_else(form)?;
            Ok((compute, field.as_str().ok_or_else(form)?.to_owned()))
        };
        Ok(Self {
            compute: value.as_array().ok_or_else(form)?.iter().map(parse).collect::<Result<_, _>>()?,
            by: keys.take("by").map_or(Ok(Vec::new()), |by| keys.names("by", by))?,
            format: Format::parse(keys)?,
            conditions: keys.take("where").map_or(Ok(Vec::new()), Condition::parse_all)?,
        })
    }

    fn held_bytes(&self) -> usize {
        held_bytes(self.compute.len() + self.by.len(), &self.conditions)
    }

    fn starts_quickly(&self) -> bool {
        is_made_quickly(self.compute.len() + self.by.len(), &self.conditions)
    }

    fn start(&self, start: Start) -> Result<(), Failure> {
        let fields = self.by.iter().chain(self.compute.iter().map(|(_, field)| field)).cloned().collect();
        let table = Table::new(self.format, fields, &self.conditions, &start.control)?;
        let compute = self.compute.iter().map(|(compute, _)| *compute).collect();
        start.with(Aggregation { table, compute, by: self.by.len() })
    }
}

/// Operation of `Aggregate`.
struct Aggregation {
    table: Table,
    compute: Vec<Compute>,
    /// Number of fields that define a group. They are the first ones of the table.
    by: usize,
}

/// Groups of a part, or of all parts.
struct Groups {
    total: bool,
    /// Numbers of the groups by their keys.
    index: HashMap<Vec<u8>, usize>,
    groups: Vec<Group>,
    memory: usize,
    used: usize,
    truncated: bool,
    key: Vec<u8>,
    charge: Charge,
    /// Memory of exact sums.
    sums: usize,
}

struct Group {
    key: Vec<u8>,
    records: u64,
    values: Vec<Accumulated>,
}

impl Groups {
    /// Number of the group with the current key, which is created if there is memory for it.
    fn find(&mut self, computations: usize) -> Result<Option<usize>, Failure> {
        if let Some(group) = self.index.get(&self.key) {
            return Ok(Some(*group));
        }
        let bytes = GROUP_BYTES + 2 * self.key.len() + computations * COMPUTE_BYTES;
        if self.truncated || self.used + bytes > self.memory {
            self.truncated = true;
            return Ok(None);
        }
        self.used += bytes;
        self.count()?;
        let number = self.groups.len();
        self.index.insert(self.key.clone(), number);
        let values = vec![Accumulated::default(); computations];
        self.groups.push(Group { key: self.key.clone(), records: 0, values });
        Ok(Some(number))
    }

    /// Counts the memory. The tables of groups grow by doubling.
    fn count(&mut self) -> Result<(), Failure> {
        self.charge.cover(self.used + self.used / 2 + self.sums)
    }

    /// Counts what a sum has grown by.
    fn grown(&mut self, before: usize, after: usize) -> Result<(), Failure> {
        if after <= before {
            return Ok(());
        }
        self.sums += after - before;
        self.count()
    }
}

impl Aggregation {
    fn add(&self, groups: &mut Groups, cells: &[Cell<'_>]) -> Result<Flow, Failure> {
        groups.key.clear();
        for cell in &cells[..self.by] {
            // A key beyond the memory is that of no group.
            if groups.key.len() <= groups.memory {
                key::encode(&mut groups.key, cell);
            }
        }
        let Some(number) = groups.find(self.compute.len())? else {
            return Ok(if groups.total { Flow::Continue } else { Flow::Overflow });
        };
        let group = &mut groups.groups[number];
        group.records += 1;
        let (mut before, mut after) = (0, 0);
        for ((value, compute), cell) in group.values.iter_mut().zip(&self.compute).zip(&cells[self.by..]) {
            self.table.check_stop()?;
            before += value.bytes();
            value.add(*compute, cell);
            after += value.bytes();
        }
        groups.grown(before, after)?;
        Ok(Flow::Continue)
    }
}

impl Operation for Aggregation {
    type Results = (Decoder, Groups);

    fn unit(&self) -> Unit {
        self.table.unit()
    }

    fn prepare(&self, head: &dyn Head) -> Result<(), Failure> {
        self.table.prepare(head)
    }

    fn step_time(&self) -> StepTime {
        self.table.step_time()
    }

    fn inline_bytes(&self, usual: u64) -> u64 {
        self.table.inline_bytes(usual)
    }

    fn begin(&self, begin: Begin) -> (Decoder, Groups) {
        let groups = Groups {
            total: begin.role == Role::Total,
            index: HashMap::new(),
            groups: Vec::new(),
            memory: begin.memory,
            used: 0,
            truncated: false,
            key: Vec::new(),
            charge: begin.account.charge(),
            sums: 0,
        };
        (self.table.decoder(&begin, 0), groups)
    }

    fn view(&self, (decoder, groups): &mut (Decoder, Groups), view: View<'_>) -> Result<Flow, Failure> {
        self.table.view(decoder, view, &mut |record| self.add(groups, record.cells))
    }

    fn end_of_part(&self, (decoder, groups): &mut (Decoder, Groups)) -> Result<Flow, Failure> {
        self.table.end_of_part(decoder, &mut |record| self.add(groups, record.cells))
    }

    fn merge(&self, total: &mut (Decoder, Groups), next: (Decoder, Groups)) -> Result<Flow, Failure> {
        total.0.invalid += next.0.invalid;
        let (total, next) = (&mut total.1, next.1);
        for group in next.groups {
            total.key.clone_from(&group.key);
            let Some(number) = total.find(self.compute.len())? else { continue };
            let into = &mut total.groups[number];
            into.records += group.records;
            let (mut before, mut after) = (0, 0);
            for (value, next) in into.values.iter_mut().zip(&group.values) {
                before += value.bytes();
                value.merge(next);
                after += value.bytes();
            }
            total.grown(before, after)?;
        }
        Ok(Flow::Continue)
    }

    fn finish(&self, (decoder, mut groups): (Decoder, Groups)) -> Result<Finished, Failure> {
        if self.by == 0 {
            // Without `by`, no records are a group as well.
            groups.key.clear();
            groups.find(self.compute.len())?;
        }
        // Its memory serves the answer, which has the texts of the keys once.
        drop(std::mem::take(&mut groups.index));
        let answer = |group: Group| GroupAnswer {
            by: key::decode(&group.key),
            records: group.records,
            values: group.values.into_iter().zip(&self.compute).map(|(value, f)| value.value(*f)).collect(),
        };
        let (truncated, charge) = (groups.truncated, groups.charge);
        let groups = groups.groups.into_iter().map(answer).collect();
        let answer = Answer::Aggregate(AggregateAnswer { groups, invalid: decoder.invalid });
        Ok(Finished::new(answer, truncated, charge))
    }
}
