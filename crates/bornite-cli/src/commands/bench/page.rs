//! The output of a benchmark: facts, then tables, as text or Markdown.

use std::io::Write;

use anyhow::Result;

use crate::output::{self, Table};

/// The human-readable part of a report.
pub(super) struct Page<'a> {
    pub(super) title: &'a str,
    /// For Markdown only.
    pub(super) introduction: &'a str,
    pub(super) facts: &'a [(&'static str, String)],
    pub(super) tables: &'a [(&'static str, Table)],
}

impl Page<'_> {
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}\n", self.title)?;
        output::pairs(out, self.facts)?;
        for (title, table) in self.tables {
            writeln!(out, "\n{title}\n")?;
            table.write(out)?;
        }
        Ok(())
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "# {}\n\n{}", self.title, self.introduction)?;
        for (name, value) in self.facts {
            writeln!(out, "- {name}: {value}")?;
        }
        for (title, table) in self.tables {
            writeln!(out, "\n## {title}\n")?;
            table.write_markdown(out)?;
        }
        Ok(())
    }
}
