//! What questions say about values that a model has no place for.

use std::collections::BTreeSet;

use super::{Event, Model, ModelError, Question};
use crate::names::{short, shown};

/// The most values that a note names.
const NAMED: usize = 3;

/// What an event says about columns that have no place for it, by column: a value as text, or `None` for a range without values.
pub(super) type NoPlace = BTreeSet<(usize, Option<String>)>;

impl Model {
    /// Says which values of a question the model has no place for, a sentence for each column.
    ///
    /// Questions, distributions, quantiles, means and samples are over the values that a model has a place for: others have
    /// probability 0 there. Only [scores](Model::score) give them a share, [`ColumnSchema::outside`](crate::data::ColumnSchema::outside).
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
        let mut all = question.given().no_place().clone();
        if let Question::Probability { event, .. } = question {
            all.extend(event.no_place().iter().cloned());
        }
        let columns: BTreeSet<usize> = all.iter().map(|(column, _)| *column).collect();
        columns.into_iter().map(|column| self.note(&all, column)).collect()
    }

    fn note(&self, all: &NoPlace, column: usize) -> String {
        let (what, is_one) = self.unseen_of(all, column);
        let them = if is_one { "it" } else { "them" };
        let outside = self.schema.columns()[column].outside;
        let scores = if outside > 0.0 {
            let share: f64 = format!("{outside:.1e}").parse().unwrap_or(outside);
            format!(", and scores give unseen values {} in total", short(share))
        } else {
            String::new()
        };
        format!("{what}; questions give {them} probability 0{scores}")
    }

    /// Which values of a column were never seen, and whether that is one.
    fn unseen_of(&self, all: &NoPlace, column: usize) -> (String, bool) {
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

    /// The error for evidence of probability 0, which says why where a value was never seen.
    pub(super) fn impossible(&self, what: &str, given: &Event) -> ModelError {
        let all = given.no_place();
        let columns: BTreeSet<usize> = all.iter().map(|(column, _)| *column).collect();
        let reasons: Vec<String> =
            columns.into_iter().map(|column| self.unseen_of(all, column).0).collect();
        let what = if reasons.is_empty() {
            what.to_owned()
        } else {
            format!("{what} ({})", reasons.join("; "))
        };
        ModelError::Impossible { what }
    }
}
