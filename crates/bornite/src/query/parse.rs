//! The query language: `name=value`, `name=?`, `name in [a, b)`, `name in {a, b}`, separated by
//! commas.

use super::{Evidence, Query, QueryError};
use crate::basis::Part;
use crate::domain::Variable;
use crate::names::{did_you_mean, nearest, shown};

pub(super) fn parse(variables: &[Variable], text: &str) -> Result<Query, QueryError> {
    let mut query = Query::unknown(variables.len());
    let mut named = vec![false; variables.len()];
    let mut p = Parser::new(text);
    p.skip_space();
    while !p.is_done() {
        let start = p.at;
        let name = p.name()?;
        let Some(index) = variables.iter().position(|v| v.name == name) else {
            let hint = nearest(variables.iter().map(|v| v.name.as_str()), &name);
            return Err(p.error_at(
                start,
                format!("there is no variable '{}'{}", shown(&name), did_you_mean(hint.as_deref())),
            ));
        };
        if std::mem::replace(&mut named[index], true) {
            return Err(p.error_at(start, format!("variable '{}' is named twice", shown(&name))));
        }
        let value_start = p.at;
        let evidence = p.evidence(&variables[index])?;
        query
            .set(variables, index, evidence)
            .map_err(|e| p.error_at(value_start, e.to_string()))?;
        p.skip_space();
        if !p.is_done() {
            p.expect(',', "expected ',' between pieces of evidence")?;
            p.skip_space();
            if p.is_done() {
                return Err(p.error("expected a variable after ','"));
            }
        }
    }
    Ok(query)
}

/// A text, and the position up to which it has been parsed.
pub(crate) struct Parser<'a> {
    text: &'a str,
    chars: Vec<char>,
    pub(crate) at: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, chars: text.chars().collect(), at: 0 }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at >= self.chars.len()
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(crate) fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> QueryError {
        self.error_at(self.at, message)
    }

    pub(crate) fn error_at(&self, at: usize, message: impl Into<String>) -> QueryError {
        QueryError::Syntax {
            message: message.into(),
            position: at + 1,
            text: self.text.replace(['\n', '\t'], " "),
        }
    }

    pub(crate) fn take(&mut self, c: char) -> bool {
        self.skip_space();
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    /// The next character that is not white space, if there is one.
    pub(crate) fn peek_sign(&mut self) -> Option<char> {
        self.skip_space();
        self.peek()
    }

    /// Takes a whole word, ignoring case.
    pub(crate) fn take_word(&mut self, word: &str, stops: &str) -> bool {
        self.skip_space();
        let rest = &self.chars[self.at..];
        let length = word.chars().count();
        let is_end = |c: &char| c.is_whitespace() || stops.contains(*c);
        let found = rest.len() >= length
            && rest.iter().zip(word.chars()).all(|(a, b)| a.eq_ignore_ascii_case(&b))
            && rest.get(length).is_none_or(is_end);
        self.at += if found { length } else { 0 };
        found
    }

    /// The text between two positions.
    pub(crate) fn slice(&self, from: usize, to: usize) -> String {
        self.chars[from..to].iter().collect()
    }

    pub(crate) fn expect(&mut self, c: char, message: &str) -> Result<(), QueryError> {
        if self.take(c) { Ok(()) } else { Err(self.error(message)) }
    }

    /// A word without special characters, or any text in quotes.
    fn name(&mut self) -> Result<String, QueryError> {
        self.word("=,[](){}'\"", "expected the name of a variable")
    }

    /// A word without white space and `stops`, or any text in quotes. A doubled quote inside quotes
    /// stands for one.
    pub(crate) fn word(&mut self, stops: &str, expected: &str) -> Result<String, QueryError> {
        self.skip_space();
        if let Some(quote @ ('\'' | '"')) = self.peek() {
            let start = self.at;
            self.at += 1;
            let mut word = String::new();
            while let Some(c) = self.peek() {
                self.at += 1;
                if c != quote {
                    word.push(c);
                } else if self.peek() == Some(quote) {
                    self.at += 1;
                    word.push(quote);
                } else {
                    return Ok(word);
                }
            }
            return Err(self.error_at(start, "this quote is not closed"));
        }
        let from = self.at;
        while self.peek().is_some_and(|c| !c.is_whitespace() && !stops.contains(c)) {
            self.at += 1;
        }
        if self.at == from {
            return Err(self.error(expected));
        }
        Ok(self.chars[from..self.at].iter().collect())
    }

    fn evidence(&mut self, variable: &Variable) -> Result<Evidence, QueryError> {
        if self.take('=') {
            if self.take('?') {
                return Ok(Evidence::Unknown);
            }
            return Ok(Evidence::Value(self.number()?));
        }
        self.skip_space();
        let rest: String = self.chars[self.at..].iter().take(2).collect();
        if rest != "in" {
            return Err(self.error("expected '=' or 'in' after the variable"));
        }
        self.at += 2;
        if self.take('{') { self.set(variable) } else { self.interval(variable) }
    }

    fn set(&mut self, variable: &Variable) -> Result<Evidence, QueryError> {
        let mut values = Vec::new();
        loop {
            self.skip_space();
            let start = self.at;
            let x = self.number()?;
            if !variable.domain.atoms().is_empty() {
                let Some(n) = variable.domain.atom(x) else {
                    let message = format!(
                        "a set can only contain atoms, and {x} is not one: the values are {}",
                        variable.domain
                    );
                    return Err(self.error_at(start, message));
                };
                values.push(n);
            } else if x < 0.0 || x.fract() != 0.0 || x > 1e15 {
                return Err(self.error_at(start, "a set can only contain whole numbers from 0"));
            } else {
                values.push(x as usize);
            }
            if self.take('}') {
                return Ok(Evidence::In(Part::Values(values)));
            }
            self.expect(',', "expected ',' or '}' in the set")?;
        }
    }

    /// An interval. A finite domain or atoms make the kind of a bracket matter. There, an open
    /// lower end or a closed upper end moves up to the next whole number of a finite domain, or to
    /// the next `f64`.
    fn interval(&mut self, variable: &Variable) -> Result<Evidence, QueryError> {
        let low_open = self.take('(');
        if !low_open && !self.take('[') {
            return Err(self.error("expected '{' or an interval such as [a, b)"));
        }
        let mut low = self.number()?;
        self.expect(',', "expected ',' between the ends of the interval")?;
        let mut high = self.number()?;
        let high_closed = self.take(']');
        if !high_closed && !self.take(')') {
            return Err(self.error("expected ')' or ']' at the end of the interval"));
        }
        if variable.domain.num_values().is_some() && low <= high {
            if low_open {
                low = low.floor() + 1.0;
            }
            if high_closed {
                high = high.floor() + 1.0;
            }
            high = high.max(low);
        }
        if !variable.domain.atoms().is_empty() && low <= high {
            if low_open && low.is_finite() {
                low = low.next_up();
            }
            if high_closed {
                high = high.next_up();
            }
            high = high.max(low);
        }
        Ok(Evidence::In(Part::Interval { low, high }))
    }

    pub(crate) fn number(&mut self) -> Result<f64, QueryError> {
        self.skip_space();
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || "+-.∞".contains(c)) {
            self.at += 1;
        }
        let word: String = self.chars[start..self.at].iter().collect();
        let number = match word.strip_prefix(['+', '-']).unwrap_or(&word) {
            "∞" | "inf" => {
                Some(if word.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY })
            }
            _ => word.parse().ok().filter(|x: &f64| x.is_finite()),
        };
        number.ok_or_else(|| {
            self.error_at(start, format!("expected a number, found '{}'", shown(&word)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;

    fn variables() -> Vec<Variable> {
        vec![
            Variable::new("age", Domain::Finite(5)),
            Variable::new("height in m", Domain::Real),
            Variable::new("city", Domain::Finite(3)),
            Variable::new("rain", Domain::with_atoms(vec![0.0, 2.5], Domain::HalfLine(0.0))),
        ]
    }

    fn read(text: &str) -> Result<Query, QueryError> {
        parse(&variables(), text)
    }

    #[test]
    fn every_form_of_evidence_is_read() {
        let q = read("age=3, 'height in m' in [-0.5, inf), city in {2,0,}").unwrap_err();
        assert!(q.to_string().contains("expected a number"), "{q}");
        let q = read("age=3, 'height in m' in [-0.5, inf), city in {2, 0}").unwrap();
        assert_eq!(
            q.evidence(),
            [
                Evidence::Value(3.0),
                Evidence::In(Part::Interval { low: -0.5, high: f64::INFINITY }),
                Evidence::In(Part::Values(vec![0, 2])),
                Evidence::Unknown,
            ]
        );
        assert_eq!(read("").unwrap(), Query::unknown(4));
        assert_eq!(read(" age = ? ").unwrap(), Query::unknown(4));
    }

    #[test]
    fn two_quotes_within_quotes_are_one() {
        let word = |text: &str| Parser::new(text).word("", "a word");
        assert_eq!(word("'it''s \"it\"' rest").unwrap(), "it's \"it\"");
        assert_eq!(word("\"a\"\"\"").unwrap(), "a\"");
        assert_eq!(word("''").unwrap(), "");
        assert!(word("'a''").unwrap_err().to_string().contains("not closed"));
    }

    #[test]
    fn brackets_matter_on_finite_domains() {
        let values = |text: &str| read(text).unwrap().evidence()[0].clone();
        assert_eq!(values("age in [1,3)"), Evidence::In(Part::Values(vec![1, 2])));
        assert_eq!(values("age in [1,3]"), Evidence::In(Part::Values(vec![1, 2, 3])));
        assert_eq!(values("age in (1,3)"), Evidence::Value(2.0));
        assert_eq!(values("age in (1,2)"), Evidence::In(Part::Values(vec![])));
        assert_eq!(values("age in [0,9)"), Evidence::Unknown);
        assert_eq!(values("age in {0,1,2,3,4}"), Evidence::Unknown);
    }

    #[test]
    fn brackets_matter_at_atoms() {
        let of = |text: &str| read(text).unwrap().evidence()[3].clone();
        let interval = |low, high| Evidence::In(Part::Interval { low, high });
        assert_eq!(of("rain in [0, 2.5)"), interval(0.0, 2.5));
        assert_eq!(of("rain in (0, 2.5]"), interval(0.0_f64.next_up(), 2.5_f64.next_up()));
        assert_eq!(of("rain in [0, 0]"), interval(0.0, 0.0_f64.next_up()));
        assert_eq!(of("rain in (0, 0]"), interval(0.0_f64.next_up(), 0.0_f64.next_up()));
        assert_eq!(of("rain in [0, inf)"), Evidence::Unknown);
        assert_eq!(of("rain in (-inf, inf]"), Evidence::Unknown);
        assert_eq!(of("rain in {2.5, 0}"), Evidence::In(Part::Values(vec![0, 1])));
        assert_eq!(of("rain in {2.5}"), Evidence::Value(2.5));
        assert_eq!(of("rain = 1"), Evidence::Value(1.0));
    }

    #[test]
    fn errors_point_at_the_character() {
        for (text, position, part) in [
            ("ege=1", 1, "did you mean 'age'?"),
            ("age=1; city=2", 6, "expected ','"),
            ("age=9", 4, "whole numbers 0 to 4"),
            ("age=1.5", 4, "cannot be 1.5"),
            ("age 1", 5, "'=' or 'in'"),
            ("age in [2, 1)", 4, "not in order"),
            ("age=1, age=2", 8, "named twice"),
            ("city in {1, x}", 13, "expected a number, found 'x'"),
            ("'height in m' in {1}", 14, "ask for an interval"),
            ("rain in {0, 1}", 13, "1 is not one"),
            ("rain = -1", 5, "the atoms 0, 2.5 and the half-line"),
            ("age=1,", 7, "expected a variable"),
            ("'age", 1, "not closed"),
        ] {
            match read(text).unwrap_err() {
                QueryError::Syntax { message, position: at, .. } => {
                    assert!(message.contains(part), "{text}: {message}");
                    assert_eq!(at, position, "{text}: {message}");
                }
                other => panic!("{text}: {other}"),
            }
        }
    }
}
