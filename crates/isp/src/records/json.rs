//! Fields of a JSON object in a line.

mod scanner;

pub(super) use scanner::decode;

use scanner::{Events, Scanner, Text};
use std::ops::Range;

/// Number of the node for the object of the line.
const ROOT: usize = 0;

/// Fields that are read of each object. Other values are checked as well, so that the validity of a line
/// does not depend on the fields.
#[derive(Clone, Debug)]
pub(crate) struct JsonFields {
    /// Keys of the fields as a tree. A parent is before its children.
    nodes: Vec<Node>,
    /// Node of each field.
    fields: Vec<usize>,
}

#[derive(Clone, Default, Debug)]
struct Node {
    parent: usize,
    /// Keys of the children with their nodes, in the order of [`find`].
    children: Vec<(Vec<u8>, usize)>,
}

/// Places of the values of an object in its line. It is reused for the next line.
#[derive(Default)]
pub(crate) struct JsonValues {
    places: Places,
    /// Buffer of the scanner.
    open: Vec<u8>,
}

impl JsonValues {
    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let Places { values, path, .. } = &self.places;
        self.open.capacity() + size_of::<Found>() * values.capacity() + size_of::<usize>() * path.capacity()
    }
}

/// Values at the nodes of a tree.
#[derive(Default)]
struct Places {
    values: Vec<Found>,
    /// Nodes of the open values, from the object of the line on.
    path: Vec<usize>,
    /// Node of the value that begins.
    next: usize,
    /// Number of values that were found. It is never set back, so that values of earlier lines are known as such.
    count: u64,
}

/// Last value at a node.
#[derive(Clone, Default)]
struct Found {
    /// Bytes of the value.
    place: Range<usize>,
    /// Number of the value.
    number: u64,
    /// Number of the object that has it.
    object: u64,
    /// `true` if all objects above it are the last ones at their nodes.
    is_valid: bool,
}

impl JsonFields {
    /// Selects fields by their names: keys with dots between them.
    pub(crate) fn new(fields: &[String]) -> Self {
        let mut nodes = vec![Node::default()];
        let fields = fields.iter().map(|field| {
            field.split('.').fold(ROOT, |parent, key| {
                find(&nodes[parent].children, key.as_bytes()).unwrap_or_else(|at| {
                    let child = nodes.len();
                    nodes.push(Node { parent, children: Vec::new() });
                    nodes[parent].children.insert(at, (key.into(), child));
                    child
                })
            })
        });
        Self { fields: fields.collect(), nodes }
    }

    /// Finds the values of the fields in one pass. Returns `false` if the line is not an object in JSON.
    pub(crate) fn read(&self, line: &[u8], values: &mut JsonValues) -> bool {
        let JsonValues { places, open } = values;
        places.begin(self.nodes.len());
        let mut scanner = Scanner::new(line);
        let object = scanner.object(open, &mut Reading { nodes: &self.nodes, places });
        let is_json = object.is_some() && scanner.end().is_some() && std::str::from_utf8(line).is_ok();
        if is_json {
            places.end(&self.nodes);
        }
        is_json
    }

    /// Text of the value of a field in the line that was read.
    pub(crate) fn field<'a>(&self, field: usize, line: &'a [u8], values: &JsonValues) -> Option<&'a [u8]> {
        let found = values.places.values.get(*self.fields.get(field)?)?;
        let value = if found.is_valid { line.get(found.place.clone())? } else { return None };
        (value != b"null").then_some(value)
    }
}

/// Finds the node of a key, or the place where it belongs. Keys are ordered by their lengths first, since these
/// differ most often.
fn find(children: &[(Vec<u8>, usize)], key: &[u8]) -> Result<usize, usize> {
    let order = |known: &Vec<u8>| known.len().cmp(&key.len()).then_with(|| (**known).cmp(key));
    children.binary_search_by(|(known, _)| order(known)).map(|at| children[at].1)
}

impl Places {
    /// Begins a line.
    fn begin(&mut self, nodes: usize) {
        self.values.resize(nodes, Found::default());
        self.path.clear();
        self.next = ROOT;
    }

    /// Ends a line. A key can occur twice: what the first value has is not valid.
    fn end(&mut self, nodes: &[Node]) {
        self.values[ROOT].is_valid = true;
        for (at, node) in nodes.iter().enumerate().skip(ROOT + 1) {
            let Found { number, is_valid, .. } = self.values[node.parent];
            self.values[at].is_valid = is_valid && self.values[at].object == number;
        }
    }
}

/// Notes the values in a line.
struct Reading<'a> {
    nodes: &'a [Node],
    places: &'a mut Places,
}

impl Events for Reading<'_> {
    #[inline]
    fn key(&mut self, key: Text<'_>) -> bool {
        let children = self.places.path.last().map_or(&[][..], |node| &self.nodes[*node].children);
        let found =
            if key.is_escaped { find(children, &decode(key.bytes)) } else { find(children, key.bytes) };
        found.map(|node| self.places.next = node).is_ok()
    }

    #[inline]
    fn begin(&mut self, at: usize) {
        let places = &mut *self.places;
        let node = places.next;
        places.count += 1;
        let object = places.values[self.nodes[node].parent].number;
        places.values[node] = Found { place: at..at, number: places.count, object, is_valid: false };
        places.path.push(node);
    }

    #[inline]
    fn end(&mut self, at: usize) {
        if let Some(node) = self.places.path.pop() {
            self.places.values[node].place.end = at;
        }
    }
}
