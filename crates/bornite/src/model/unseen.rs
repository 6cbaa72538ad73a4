//! Notes about values in questions that are outside a model's domain.

use std::collections::BTreeSet;

use super::{Event, Model, ModelError, Question};
use crate::names::{shortest_number, shown};

/// The maximum number of values that a note lists.
const NAMED: usize = 3;

/// Values outside the domain of their column: the value as text, or `None` for a range without any values.
pub(super) type UnseenValues = BTreeSet<(usize, Option<String>)>;

impl Model {
    /// Lists which values of a question are outside the model's domain, in one sentence per column.
    ///
    /// Questions, distributions, quantiles, means and samples are restricted to the model's domain: other values have
    /// probability 0 there. Only [scores](Model::score) give them a small probability,
    /// [`ColumnSchema::outside`](crate::data::ColumnSchema::outside).
    ///
    /// ```
    /// use bornite::Fit;
    /// use bornite::data::{CsvOptions, Table};
    /// use bornite::model::Question;
    ///
    /// let text = format!("class,size\n{}", "1,s\n2,m\n3,l\n".repeat(20));
    /// let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default())?;
    /// let model = Fit::new().epochs(1).run(&table)?;
    /// let question = Question::parse(model.schema(), "P(class=9)")?;
    /// assert!(model.notes(&question)[0].starts_with("9 was never seen in class; "));
    /// assert_eq!(model.answer(&question)?.number(), Some(0.0));
    /// # Ok::<(), bornite::Error>(())
    /// ```
    pub fn notes(&self, question: &Question) -> Vec<String> {
        let mut all = question.given().unseen().clone();
        if let Question::Probability { event, .. } = question {
            all.extend(event.unseen().iter().cloned());
        }
        columns_of(&all).into_iter().map(|column| self.note(&all, column)).collect()
    }

    fn note(&self, all: &UnseenValues, column: usize) -> String {
        let (what, is_one) = self.unseen_of(all, column);
        let them = if is_one { "it" } else { "them" };
        let outside = self.schema.columns()[column].outside;
        let scores = if outside > 0.0 {
            let share: f64 = format!("{outside:.1e}").parse().unwrap_or(outside);
            format!(", and scores give unseen values {} in total", shortest_number(share))
        } else {
            String::new()
        };
        format!("{what}; questions give {them} probability 0{scores}")
    }

    /// Which values of a column were never seen, as a clause, and whether it is singular.
    fn unseen_of(&self, all: &UnseenValues, column: usize) -> (String, bool) {
        let name = shown(&self.schema.columns()[column].name);
        let of_column = || all.iter().filter(|(c, _)| *c == column);
        let values: Vec<&String> = of_column().filter_map(|(_, value)| value.as_ref()).collect();
        let mut named: Vec<String> = values.iter().take(NAMED).map(|value| shown(value)).collect();
        let rest = values.len() - named.len();
        if rest > 0 {
            named.push(format!("{rest} more values"));
        }
        if of_column().any(|(_, value)| value.is_none()) {
            if named.is_empty() {
                return (format!("no value of {name} was ever seen in this range"), true);
            }
            named.push("the range".to_owned());
        }
        let last = named.pop().unwrap_or_default();
        if named.is_empty() {
            return (format!("{last} was never seen in {name}"), true);
        }
        (format!("{} and {last} were never seen in {name}", named.join(", ")), false)
    }

    /// The error for evidence with probability 0. It names the values that were never seen, if there are any.
    pub(super) fn impossible(&self, what: &str, given: &Event) -> ModelError {
        let all = given.unseen();
        let reasons: Vec<String> =
            columns_of(all).into_iter().map(|column| self.unseen_of(all, column).0).collect();
        let what = if reasons.is_empty() {
            what.to_owned()
        } else {
            format!("{what} ({})", reasons.join("; "))
        };
        ModelError::Impossible { what }
    }
}

/// The columns with unseen values, in order.
fn columns_of(unseen: &UnseenValues) -> BTreeSet<usize> {
    unseen.iter().map(|(column, _)| *column).collect()
}
