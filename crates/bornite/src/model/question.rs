//! The language of questions over columns.

use std::ops::Bound;

use super::{Event, ModelError};
use crate::basis::Part;
use crate::data::{Cell, DataError, Ends, Schema, nearest};
use crate::query::parse::{Parser, did_you_mean};
use crate::query::{Evidence, QueryError};

/// A question to a model.
///
/// | question | answer |
/// |---|---|
/// | `P(income='>50K', age in [30, 40) \| sex='F')` | a probability; a density where a continuous column has a value |
/// | `E[age \| sex='F']` | the mean of a column of numbers |
/// | `median(age \| …)`, `quantile(age, 0.9 \| …)` | the smallest number with at least this share below it |
/// | `argmax(city \| …)` | the most likely value |
///
/// Events and evidence are joined by commas and all hold: `column = value`, `column != value`, `column < number` (or `<=`, `>`,
/// `>=`), `column in [a, b)` with square brackets for ends that belong to it, `column in {a, b}`, `column = ?` for nothing.
/// Names and values with spaces or signs in them stand in quotes of either kind; two such quotes within
/// them stand for one.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// P(event | given).
    Probability {
        /// What may hold.
        event: Event,
        /// What holds.
        given: Event,
    },
    /// E[column | given].
    Mean {
        /// The column.
        column: usize,
        /// What holds.
        given: Event,
    },
    /// The quantile of a column.
    Quantile {
        /// The column.
        column: usize,
        /// The share below it.
        level: f64,
        /// What holds.
        given: Event,
    },
    /// The most likely value of a column.
    Mode {
        /// The column.
        column: usize,
        /// What holds.
        given: Event,
    },
}

const FORMS: &str = "expected P(…), E[…], median(…), quantile(…, p) or argmax(…)";
/// What ends a word without quotes.
const STOPS: &str = "=<>!,|[](){}'\"";

impl Question {
    /// Reads a question.
    ///
    /// # Errors
    /// Points at the character that cannot be read, and names the nearest column or label for one that is not there.
    pub fn parse(schema: &Schema, text: &str) -> Result<Self, ModelError> {
        let mut p = Words { p: Parser::new(text), schema };
        let start = p.start();
        let head = p.p.word(STOPS, FORMS)?;
        let close = if p.p.take('(') {
            ')'
        } else if p.p.take('[') {
            ']'
        } else {
            return Err(p.p.error("expected '(' after the question's name").into());
        };
        let question = match head.to_lowercase().as_str() {
            "p" => {
                let event = p.known()?;
                Self::Probability { event, given: p.given()? }
            }
            "e" | "mean" => Self::Mean { column: p.column()?, given: p.given()? },
            "median" => Self::Quantile { column: p.column()?, level: 0.5, given: p.given()? },
            "quantile" => {
                let column = p.column()?;
                p.p.expect(
                    ',',
                    "expected ',' and a share between 0 and 1, as in quantile(x, 0.9)",
                )?;
                let at = p.start();
                let level = p.p.number()?;
                if !(0.0..=1.0).contains(&level) {
                    return Err(p.p.error_at(at, "a quantile is of a share from 0 to 1").into());
                }
                Self::Quantile { column, level, given: p.given()? }
            }
            "argmax" | "mode" => Self::Mode { column: p.column()?, given: p.given()? },
            _ => return Err(p.p.error_at(start, format!("{FORMS}, found '{head}'")).into()),
        };
        if !p.p.take(close) {
            return Err(p.p.error(format!("expected ',', '|' or '{close}'")).into());
        }
        p.p.skip_space();
        if !p.p.is_done() {
            return Err(p.p.error("the question ends before this; remove the rest").into());
        }
        Ok(question)
    }
}

impl Event {
    /// Reads what is known: the evidence of a [`Question`], after its `|`.
    ///
    /// # Errors
    /// Points at the character that cannot be read, and names the nearest column or label for one that is not there.
    pub fn parse(schema: &Schema, text: &str) -> Result<Self, ModelError> {
        let mut p = Words { p: Parser::new(text), schema };
        p.p.skip_space();
        if p.p.is_done() {
            return Ok(Event::nothing(schema.num_variables()));
        }
        let known = p.known()?;
        p.p.skip_space();
        if !p.p.is_done() {
            return Err(p.p.error("expected ',' between pieces of evidence").into());
        }
        Ok(known)
    }
}

/// A text about columns.
struct Words<'a> {
    p: Parser<'a>,
    schema: &'a Schema,
}

impl Words<'_> {
    /// Where the next word begins.
    fn start(&mut self) -> usize {
        self.p.skip_space();
        self.p.at
    }

    fn column(&mut self) -> Result<usize, ModelError> {
        let at = self.start();
        let name = self.p.word(STOPS, "expected the name of a column")?;
        let columns = self.schema.columns();
        columns.iter().position(|c| c.name == name).ok_or_else(|| {
            let hint = nearest(columns.iter().map(|c| c.name.as_str()), &name);
            let hint = did_you_mean(hint.as_deref());
            self.p.error_at(at, format!("there is no column '{name}'{hint}")).into()
        })
    }

    /// What follows a `|`, if there is one.
    fn given(&mut self) -> Result<Event, ModelError> {
        if self.p.take('|') {
            self.known()
        } else {
            Ok(Event::nothing(self.schema.num_variables()))
        }
    }

    /// Pieces of evidence with commas between them.
    fn known(&mut self) -> Result<Event, ModelError> {
        let mut known = self.piece()?;
        while self.p.take(',') {
            let piece = self.piece()?;
            known = known.and(self.schema, &piece)?;
        }
        Ok(known)
    }

    fn piece(&mut self) -> Result<Event, ModelError> {
        let before = self.start();
        let word = self.p.word(STOPS, "expected the name of a column")?;
        if let Some((column, part)) = self.part_of_column(&word) {
            return self.part_piece(column, &part);
        }
        self.p.at = before;
        let index = self.column()?;
        let name = self.schema.columns()[index].name.clone();
        let at = self.start();
        let operator = self.operator()?;
        let value_at = self.start();
        let found = match operator {
            Operator::Equal if self.p.take('?') => Ok(Event::nothing(self.schema.num_variables())),
            Operator::Equal => {
                let cell = self.cell()?;
                Event::value(self.schema, &name, Cell::Text(&cell))
            }
            Operator::Unequal => {
                let cell = self.cell()?;
                return self.all_but(index, &cell).map_err(|e| self.at(value_at, e));
            }
            Operator::In => return self.part(&name).map_err(|e| self.at(at, e)),
            Operator::Below(bound) => {
                let x = self.end(index)?;
                Event::interval(self.schema, &name, Bound::Unbounded, bound.of(x))
            }
            Operator::Above(bound) => {
                let x = self.end(index)?;
                Event::interval(self.schema, &name, bound.of(x), Bound::Unbounded)
            }
        };
        found.map_err(|e| self.at(value_at, e))
    }

    /// An error about the data, pointed at the character where it is.
    fn at(&self, at: usize, error: ModelError) -> ModelError {
        match error {
            ModelError::Data(e) => self.p.error_at(at, e.to_string()).into(),
            other => other,
        }
    }

    fn operator(&mut self) -> Result<Operator, QueryError> {
        let bound = |p: &mut Parser<'_>| if p.take('=') { End::Closed } else { End::Open };
        if self.p.take('=') {
            return Ok(Operator::Equal);
        }
        if self.p.take('<') {
            return Ok(Operator::Below(bound(&mut self.p)));
        }
        if self.p.take('>') {
            return Ok(Operator::Above(bound(&mut self.p)));
        }
        if self.p.take('!') {
            self.p.expect('=', "expected '=' after '!'")?;
            return Ok(Operator::Unequal);
        }
        let at = self.start();
        let expected = "expected '=', '!=', '<', '>' or 'in' after the column";
        match self.p.word(STOPS, expected)?.as_str() {
            "in" => Ok(Operator::In),
            _ => Err(self.p.error_at(at, expected)),
        }
    }

    fn cell(&mut self) -> Result<String, QueryError> {
        self.p.word(STOPS, "expected a value; put one with signs in it in quotes, as in '>50K'")
    }

    fn part(&mut self, name: &str) -> Result<Event, ModelError> {
        if self.p.take('{') {
            let mut cells = Vec::new();
            loop {
                let at = self.start();
                let cell = self.cell()?;
                let index = self.schema.find(name)?;
                let fits = self.schema.encode_value(index, Cell::Text(&cell));
                fits.map_err(|e| self.at(at, e.into()))?;
                cells.push(cell);
                if self.p.take('}') {
                    break;
                }
                self.p.expect(',', "expected ',' or '}' in the set")?;
            }
            let cells: Vec<Cell<'_>> = cells.iter().map(|c| Cell::Text(c)).collect();
            return Event::set(self.schema, name, &cells);
        }
        let low_open = self.p.take('(');
        if !low_open && !self.p.take('[') {
            return Err(self.p.error("expected '{' or an interval such as [a, b)").into());
        }
        let column = self.schema.find(name)?;
        let (low, high) = self.interval(low_open, Some(column))?;
        Event::interval(self.schema, name, low, high)
    }

    /// The ends of an interval, after its first bracket.
    fn interval(
        &mut self,
        low_open: bool,
        column: Option<usize>,
    ) -> Result<(Bound<f64>, Bound<f64>), ModelError> {
        let number = |words: &mut Self| match column {
            Some(column) => words.end(column),
            None => Ok(words.p.number()?),
        };
        let low = number(self)?;
        self.p.expect(',', "expected ',' between the ends of the interval")?;
        let high = number(self)?;
        let high_closed = self.p.take(']');
        if !high_closed && !self.p.take(')') {
            return Err(self.p.error("expected ')' or ']' at the end of the interval").into());
        }
        let low = if low_open { End::Open } else { End::Closed }.of(low);
        let high = if high_closed { End::Closed } else { End::Open }.of(high);
        Ok((low, high))
    }

    /// One end of an interval of a column: a number, or a date or time.
    fn end(&mut self, column: usize) -> Result<f64, ModelError> {
        let coding = self.schema.columns()[column].kind.coding();
        if !coding.is_time() {
            return Ok(self.p.number()?);
        }
        let at = self.start();
        let text = self.cell()?;
        let expected = || format!("expected a date or time as in the column, found '{text}'");
        coding.read_number(&text).ok_or_else(|| self.p.error_at(at, expected()).into())
    }

    /// A column and the name of one of its parts, as in `pickup.hour`, where that is no column.
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

    /// What is known of a part of a column.
    fn part_piece(&mut self, column: usize, part: &str) -> Result<Event, ModelError> {
        let all = self.schema.columns()[column].kind.coding().part_values(part);
        let at = self.start();
        let within = |low, high| {
            let ends = Ends::new(low, high).ok()?;
            let numbers = all.as_ref()?.iter().filter(|x| ends.contains(**x as f64));
            Some(numbers.map(ToString::to_string).collect::<Vec<_>>())
        };
        let values = match self.operator()? {
            Operator::Equal => Some(vec![self.cell()?]),
            Operator::Unequal => {
                let cell = self.cell()?;
                all.as_ref()
                    .map(|all| all.iter().map(ToString::to_string).filter(|x| *x != cell).collect())
            }
            Operator::Below(bound) => within(Bound::Unbounded, bound.of(self.p.number()?)),
            Operator::Above(bound) => within(bound.of(self.p.number()?), Bound::Unbounded),
            Operator::In if self.p.take('{') => {
                let mut cells = vec![self.cell()?];
                while !self.p.take('}') {
                    self.p.expect(',', "expected ',' or '}' in the set")?;
                    cells.push(self.cell()?);
                }
                Some(cells)
            }
            Operator::In => {
                let low_open = self.p.take('(');
                if !low_open && !self.p.take('[') {
                    return Err(self.p.error("expected '{' or an interval such as [a, b)").into());
                }
                let (low, high) = self.interval(low_open, None)?;
                within(low, high)
            }
        };
        let blocks = values.and_then(|v| self.schema.evidence_part(column, part, &v));
        let Some(blocks) = blocks else {
            let message = format!("this is not a value of '{part}'");
            return Err(self.p.error_at(at, message).into());
        };
        Event::from_blocks(self.schema, blocks)
    }

    /// Every value of a finite column but one.
    fn all_but(&self, column: usize, cell: &str) -> Result<Event, ModelError> {
        let (values, _) = self.schema.encode_value(column, Cell::Text(cell))?;
        let range = self.schema.variables_of(column);
        let variables = self.schema.variables();
        let count = variables[range.start].domain.num_values().filter(|_| range.len() == 1);
        let Some(count) = count else {
            let column = self.schema.columns()[column].name.clone();
            let problem = "'!=' is for columns of a few values; ask for < or > instead";
            return Err(DataError::Evidence { column, problem }.into());
        };
        let others = (0..count).filter(|&v| v as f64 != values[0]).collect();
        let block = vec![(range.start, Evidence::In(Part::Values(others)))];
        Event::from_blocks(self.schema, vec![block])
    }
}

enum Operator {
    Equal,
    Unequal,
    In,
    Below(End),
    Above(End),
}

#[derive(Clone, Copy)]
enum End {
    Open,
    Closed,
}

impl End {
    fn of(self, x: f64) -> Bound<f64> {
        match self {
            End::Open => Bound::Excluded(x),
            End::Closed => Bound::Included(x),
        }
    }
}
