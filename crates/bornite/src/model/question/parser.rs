//! The parser of questions and evidence.

use std::ops::Bound;

use super::Question;
use crate::data::{Cell, End, Ends, Schema};
use crate::model::{Event, ModelError};
use crate::names::{did_you_mean, nearest, shown};
use crate::query::QueryError;
use crate::query::parse::Parser;

/// Characters that end an unquoted word.
pub(super) const STOPS: &str = "=<>!,|[](){}'\"";
/// Characters that end an unquoted column name in a list.
const LIST_STOPS: &str = "=<>!,|[](){}'\";";
/// The maximum nesting depth of parentheses.
const MAX_DEPTH: usize = 64;

/// A parser for questions and evidence.
pub(super) struct QuestionParser<'a> {
    pub(super) cursor: Parser<'a>,
    pub(super) schema: &'a Schema,
    /// The number of open parentheses.
    pub(super) depth: usize,
}

/// The left side of a condition: a column, or a part of one.
#[derive(Clone, Debug)]
enum Subject {
    Column(usize),
    Part(usize, String),
}

impl QuestionParser<'_> {
    /// The position of the next word.
    pub(super) fn start(&mut self) -> usize {
        self.cursor.skip_space();
        self.cursor.at
    }

    pub(super) fn column(&mut self) -> Result<usize, ModelError> {
        let at = self.start();
        let name = self.cursor.word(LIST_STOPS, "expected the name of a column")?;
        self.find(&name).ok_or_else(|| self.no_column(at, &name))
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.schema.columns().iter().position(|c| c.name == name)
    }

    fn no_column(&self, at: usize, name: &str) -> ModelError {
        let columns = self.schema.columns().iter();
        let hint = nearest(columns.map(|c| c.name.as_str()), name);
        let hint = did_you_mean(hint.as_deref());
        self.cursor.error_at(at, format!("there is no column '{}'{hint}", shown(name))).into()
    }

    /// Parses distinct columns, separated by commas.
    pub(super) fn columns(&mut self) -> Result<Vec<usize>, ModelError> {
        let mut columns = vec![self.column()?];
        while self.cursor.take(',') {
            let at = self.start();
            let column = self.column()?;
            if columns.contains(&column) {
                return Err(self.cursor.error_at(at, "this column is named twice").into());
            }
            columns.push(column);
        }
        Ok(columns)
    }

    pub(super) fn quantile(&mut self) -> Result<Question, ModelError> {
        let column = self.column()?;
        self.cursor.expect(
            ',',
            "expected ',' and a probability between 0 and 1, as in quantile(x, 0.9)",
        )?;
        let at = self.start();
        let level = self.cursor.number()?;
        if !(0.0..=1.0).contains(&level) {
            return Err(self
                .cursor
                .error_at(at, "the probability of a quantile must be from 0 to 1")
                .into());
        }
        Ok(Question::Quantile { column, level, given: self.given()? })
    }

    /// Parses the evidence after a `|`, if there is any.
    pub(super) fn given(&mut self) -> Result<Event, ModelError> {
        if self.cursor.take('|') {
            self.conditions()
        } else {
            Ok(Event::certain(self.schema.num_variables()))
        }
    }

    /// Parses conditions separated by commas.
    pub(super) fn conditions(&mut self) -> Result<Event, ModelError> {
        let mut known = self.any_of()?;
        while self.cursor.take(',') {
            known = known.and(self.schema, &self.any_of()?)?;
        }
        Ok(known)
    }

    /// Parses conditions separated by `or`.
    fn any_of(&mut self) -> Result<Event, ModelError> {
        let mut known = self.all_of()?;
        loop {
            let at = self.start();
            if !self.cursor.take_word("or", STOPS) {
                return Ok(known);
            }
            let other = self.all_of()?;
            known = known.or(self.schema, &other).map_err(|e| self.at(at, e))?;
        }
    }

    /// Parses conditions separated by `and`.
    fn all_of(&mut self) -> Result<Event, ModelError> {
        let mut known = self.negatable()?;
        while self.cursor.take_word("and", STOPS) {
            known = known.and(self.schema, &self.negatable()?)?;
        }
        Ok(known)
    }

    /// Parses a single condition, a condition in parentheses, or a negated condition.
    fn negatable(&mut self) -> Result<Event, ModelError> {
        let at = self.start();
        if self.depth > MAX_DEPTH {
            return Err(self.cursor.error("there are too many parentheses here").into());
        }
        self.depth += 1;
        let is_column = self.schema.columns().iter().any(|c| c.name.eq_ignore_ascii_case("not"));
        let event = if !is_column && self.cursor.take_word("not", STOPS) {
            self.negatable()?.not(self.schema).map_err(|e| self.at(at, e))?
        } else if self.cursor.take('(') {
            let known = self.conditions()?;
            self.cursor.expect(')', "expected ')' to close the parenthesis")?;
            known
        } else {
            self.condition()?
        };
        self.depth -= 1;
        Ok(event)
    }

    fn condition(&mut self) -> Result<Event, ModelError> {
        let before = self.start();
        let word = self.cursor.word(STOPS, "expected the name of a column")?;
        if let Some(subject) = self.subject(&word) {
            return self.relation(&subject);
        }
        if !matches!(self.cursor.peek_sign(), Some('<' | '>')) {
            return Err(self.no_column(before, &word));
        }
        // The number comes first, as in 1 < x or 1 < x < 2.
        let operator = self.operator()?;
        let at = self.start();
        let name = self.cursor.word(STOPS, "expected the name of a column")?;
        let Some(subject) = self.subject(&name) else {
            // In `agee < 3`, the word before the number is the unknown column.
            let is_number = name.parse::<f64>().is_ok();
            let (at, name) = if is_number { (before, word) } else { (at, name) };
            return Err(self.no_column(at, &name));
        };
        let after_name = std::mem::replace(&mut self.cursor.at, before);
        let first = self.compare(&subject, operator.mirrored())?;
        self.cursor.at = after_name;
        if !matches!(self.cursor.peek_sign(), Some('<' | '>')) {
            return Ok(first);
        }
        let operator = self.operator()?;
        let second = self.compare(&subject, operator)?;
        first.and(self.schema, &second)
    }

    fn subject(&self, word: &str) -> Option<Subject> {
        let column = self.find(word).map(Subject::Column);
        column
            .or_else(|| self.part_of_column(word).map(|(column, part)| Subject::Part(column, part)))
    }

    /// Parses what follows a column or part.
    fn relation(&mut self, subject: &Subject) -> Result<Event, ModelError> {
        let index = match subject {
            Subject::Part(column, part) => return self.part_condition(*column, part),
            Subject::Column(index) => *index,
        };
        let name = self.schema.columns()[index].name.clone();
        if let Some(yes) = self.schema.columns()[index].kind.coding().yes()
            && self.is_end()
        {
            return Event::value(self.schema, &name, Cell::Text(yes));
        }
        let at = self.start();
        if self.cursor.take_word("is", STOPS) {
            let is_known = self.cursor.take_word("not", STOPS);
            if !self.cursor.take_word("missing", STOPS) {
                return Err(self
                    .cursor
                    .error("expected 'missing' or 'not missing' after 'is'")
                    .into());
            }
            let found = if is_known { Event::known } else { Event::missing };
            return found(self.schema, &name).map_err(|e| self.at(at, e));
        }
        let operator = self.operator()?;
        let value_at = self.start();
        match operator {
            Operator::Equal if self.cursor.take('?') => {
                Ok(Event::certain(self.schema.num_variables()))
            }
            Operator::Equal | Operator::Unequal => {
                let cell = self.cell()?;
                let found = Event::value(self.schema, &name, Cell::Text(&cell));
                let found = match operator {
                    Operator::Unequal => found.and_then(|event| event.not(self.schema)),
                    Operator::Equal
                    | Operator::In
                    | Operator::NotIn
                    | Operator::Below(_)
                    | Operator::Above(_) => found,
                };
                found.map_err(|e| self.at(value_at, e))
            }
            Operator::In => self.membership(&name).map_err(|e| self.at(at, e)),
            Operator::NotIn => {
                let found = self.membership(&name).and_then(|event| event.not(self.schema));
                found.map_err(|e| self.at(at, e))
            }
            Operator::Below(_) | Operator::Above(_) => self.compare(subject, operator),
        }
    }

    /// Whether the condition ends here. A Boolean column by itself means that it is true.
    fn is_end(&mut self) -> bool {
        let at = self.start();
        let is_end = matches!(self.cursor.peek(), None | Some(')' | ']' | ',' | '|'))
            || self.cursor.take_word("and", STOPS)
            || self.cursor.take_word("or", STOPS);
        self.cursor.at = at;
        is_end
    }

    /// Parses the number that a column or part is compared with.
    fn compare(&mut self, subject: &Subject, operator: Operator) -> Result<Event, ModelError> {
        let at = self.start();
        let column = match subject {
            Subject::Column(column) => Some(*column),
            Subject::Part(..) => None,
        };
        let end = self.end(column)?;
        let (low, high) = match operator {
            Operator::Below(limit) => (Bound::Unbounded, limit.of(end)),
            Operator::Above(limit) => (limit.of(end), Bound::Unbounded),
            Operator::Equal | Operator::Unequal | Operator::In | Operator::NotIn => {
                return Err(self.cursor.error_at(at, "expected '<' or '>'").into());
            }
        };
        let ends = Ends::exact(low, high);
        let found = match subject {
            Subject::Column(column) => Event::between(self.schema, *column, ends),
            Subject::Part(column, part) => {
                let within =
                    ends.ok().and_then(|ends| self.part_values_within(*column, part, &ends));
                return self.part_event(*column, part, within, at);
            }
        };
        found.map_err(|e| self.at(at, e))
    }

    /// Adds the position in the text to an error about the data.
    fn at(&self, at: usize, error: ModelError) -> ModelError {
        match error {
            ModelError::Data(e) => self.cursor.error_at(at, e.to_string()).into(),
            other => other,
        }
    }

    fn operator(&mut self) -> Result<Operator, QueryError> {
        let limit = |p: &mut Parser<'_>| if p.take('=') { Limit::Closed } else { Limit::Open };
        if self.cursor.take('=') {
            // Accept both = and ==.
            if self.cursor.peek() == Some('=') {
                self.cursor.at += 1;
            }
            return Ok(Operator::Equal);
        }
        if self.cursor.take('<') {
            return Ok(Operator::Below(limit(&mut self.cursor)));
        }
        if self.cursor.take('>') {
            return Ok(Operator::Above(limit(&mut self.cursor)));
        }
        if self.cursor.take('!') {
            self.cursor.expect('=', "expected '=' after '!'")?;
            return Ok(Operator::Unequal);
        }
        if self.cursor.take_word("in", STOPS) {
            return Ok(Operator::In);
        }
        let at = self.start();
        if self.cursor.take_word("not", STOPS) && self.cursor.take_word("in", STOPS) {
            return Ok(Operator::NotIn);
        }
        Err(self
            .cursor
            .error_at(at, "expected '=', '!=', '<', '>', 'in', 'not in' or 'is' after the column"))
    }

    fn cell(&mut self) -> Result<String, QueryError> {
        self.cursor.word(STOPS, "expected a value; quote values with punctuation, as in '>50K'")
    }

    fn membership(&mut self, name: &str) -> Result<Event, ModelError> {
        let column = self.schema.find(name)?;
        if self.cursor.take('{') {
            let mut cells = Vec::new();
            loop {
                let at = self.start();
                let cell = self.cell()?;
                let fits = self.schema.encode_value(column, Cell::Text(&cell));
                if !self.schema.columns()[column].is_outside(Cell::Text(&cell)) {
                    fits.map_err(|e| self.at(at, e.into()))?;
                }
                cells.push(cell);
                if self.cursor.take('}') {
                    break;
                }
                self.cursor.expect(',', "expected ',' or '}' in the set")?;
            }
            let cells: Vec<Cell<'_>> = cells.iter().map(|c| Cell::Text(c)).collect();
            return Event::set(self.schema, name, &cells);
        }
        let ends = self.interval(Some(column))?;
        Event::between(self.schema, column, ends)
    }

    /// Parses an interval. The inner error contains both ends if they are not in order.
    fn interval(&mut self, column: Option<usize>) -> Result<Result<Ends, (f64, f64)>, ModelError> {
        let low_open = self.cursor.take('(');
        if !low_open && !self.cursor.take('[') {
            return Err(self.cursor.error("expected '{' or an interval such as [a, b)").into());
        }
        let low = self.end(column)?;
        self.cursor.expect(',', "expected ',' between the ends of the interval")?;
        let high = self.end(column)?;
        let high_closed = self.cursor.take(']');
        if !high_closed && !self.cursor.take(')') {
            return Err(self.cursor.error("expected ')' or ']' at the end of the interval").into());
        }
        let low = if low_open { Limit::Open } else { Limit::Closed }.of(low);
        let high = if high_closed { Limit::Closed } else { Limit::Open }.of(high);
        Ok(Ends::exact(low, high))
    }

    /// Parses one end of an interval: a number, or a date or time.
    fn end(&mut self, column: Option<usize>) -> Result<End, ModelError> {
        let coding = column.map(|column| self.schema.columns()[column].kind.coding());
        let at = self.start();
        let Some(coding) = coding.filter(|coding| coding.is_time()) else {
            let number = self.cursor.number()?;
            // Above 2⁵³, only the text identifies the number exactly.
            let whole = self.cursor.slice(at, self.cursor.at).parse().ok();
            return Ok(End { number, whole });
        };
        let text = self.cell()?;
        let expected =
            || format!("expected a date or time as in the column, found '{}'", shown(&text));
        let number = coding.read_number(&text);
        number.map(End::from).ok_or_else(|| self.cursor.error_at(at, expected()).into())
    }

    /// A column and the name of one of its parts, as in `pickup.hour`, unless that is the name of a column.
    fn part_of_column(&self, word: &str) -> Option<(usize, String)> {
        let columns = self.schema.columns();
        if columns.iter().any(|c| c.name == word) {
            return None;
        }
        let (name, part) = word.rsplit_once('.')?;
        let column = columns.iter().position(|c| c.name == name)?;
        let coding = columns[column].kind.coding();
        let is_part = coding.part_values(part).is_some() || coding.part(part, &[]).is_some();
        is_part.then(|| (column, part.to_owned()))
    }

    /// The values of a part within an interval.
    fn part_values_within(&self, column: usize, part: &str, ends: &Ends) -> Option<Vec<String>> {
        let all = self.schema.columns()[column].kind.coding().part_values(part)?;
        let within = all.iter().filter(|x| ends.contains(**x as f64));
        Some(within.map(ToString::to_string).collect())
    }

    /// The event that a part of a column has one of these values.
    fn part_event(
        &self,
        column: usize,
        part: &str,
        values: Option<Vec<String>>,
        at: usize,
    ) -> Result<Event, ModelError> {
        let blocks = values.and_then(|v| self.schema.evidence_part(column, part, &v));
        let Some(blocks) = blocks else {
            let message = format!("this is not a value of '{part}'");
            return Err(self.cursor.error_at(at, message).into());
        };
        Event::from_blocks(self.schema, blocks)
    }

    /// Parses a condition on a part of a column.
    fn part_condition(&mut self, column: usize, part: &str) -> Result<Event, ModelError> {
        let at = self.start();
        let operator = self.operator()?;
        let values = match operator {
            Operator::Below(_) | Operator::Above(_) => {
                return self.compare(&Subject::Part(column, part.to_owned()), operator);
            }
            Operator::Equal | Operator::Unequal => Some(vec![self.cell()?]),
            Operator::In | Operator::NotIn if self.cursor.take('{') => {
                let mut cells = vec![self.cell()?];
                while !self.cursor.take('}') {
                    self.cursor.expect(',', "expected ',' or '}' in the set")?;
                    cells.push(self.cell()?);
                }
                Some(cells)
            }
            Operator::In | Operator::NotIn => {
                let ends = self.interval(None)?;
                ends.ok().and_then(|ends| self.part_values_within(column, part, &ends))
            }
        };
        let event = self.part_event(column, part, values, at)?;
        match operator {
            Operator::Unequal | Operator::NotIn => event.not(self.schema),
            Operator::Equal | Operator::In | Operator::Below(_) | Operator::Above(_) => Ok(event),
        }
    }
}

#[derive(Clone, Copy)]
enum Operator {
    Equal,
    Unequal,
    In,
    NotIn,
    Below(Limit),
    Above(Limit),
}

impl Operator {
    /// Swaps the two sides: a < x is x > a.
    fn mirrored(self) -> Self {
        match self {
            Operator::Below(limit) => Operator::Above(limit),
            Operator::Above(limit) => Operator::Below(limit),
            same @ (Operator::Equal | Operator::Unequal | Operator::In | Operator::NotIn) => same,
        }
    }
}

#[derive(Clone, Copy)]
enum Limit {
    Open,
    Closed,
}

impl Limit {
    fn of(self, end: End) -> Bound<End> {
        match self {
            Limit::Open => Bound::Excluded(end),
            Limit::Closed => Bound::Included(end),
        }
    }
}
