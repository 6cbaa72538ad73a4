//! A plot under construction: shapes in a consistent style, written as SVG.

use std::fmt::Write;

use base64::prelude::*;

use crate::draw::{escape, px};

/// The colors and fonts of all charts.
pub(super) const STYLE: &str = include_str!("charts.css");

/// The alignment of a text relative to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A plot.
pub(super) struct Canvas {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64, title: impl Into<String>) -> Self {
        Self { width, height, title: title.into(), body: String::new() }
    }

    pub(super) fn rect(&mut self, class: &str, [x, y, w, h]: [f64; 4]) {
        let (x, y, w, h) = (px(x), px(y), px(w.max(0.0)), px(h.max(0.0)));
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x}" y="{y}" width="{w}" height="{h}"/>"#
        );
    }

    /// A rectangle with a tooltip.
    pub(super) fn told_rect(&mut self, class: &str, [x, y, w, h]: [f64; 4], words: &str) {
        let (x, y, w, h) = (px(x), px(y), px(w.max(0.0)), px(h.max(0.0)));
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x}" y="{y}" width="{w}" height="{h}"><title>{}</title></rect>"#,
            escape(words)
        );
    }

    pub(super) fn line(&mut self, class: &str, [x0, y0, x1, y1]: [f64; 4]) {
        let (a, b, c, d) = (px(x0), px(y0), px(x1), px(y1));
        let _ =
            writeln!(self.body, r#"<line class="{class}" x1="{a}" y1="{b}" x2="{c}" y2="{d}"/>"#);
    }

    /// A line through points, interrupted at points that are not finite.
    pub(super) fn curve(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let (mut path, mut pen_down) = (String::new(), false);
        for (x, y) in points {
            if x.is_finite() && y.is_finite() {
                let _ = write!(path, "{}{} {}", if pen_down { 'L' } else { 'M' }, px(x), px(y));
            }
            pen_down = x.is_finite() && y.is_finite();
        }
        self.path(class, &path, 0.0);
    }

    /// A path. With a stroke width of 0, the class determines the width.
    pub(super) fn path(&mut self, class: &str, path: &str, stroke: f64) {
        let stroke =
            if stroke > 0.0 { format!(r#" stroke-width="{stroke:.2}""#) } else { String::new() };
        let _ = writeln!(self.body, r#"<path class="{class}"{stroke} d="{path}"/>"#);
    }

    pub(super) fn dot(&mut self, class: &str, x: f64, y: f64, r: f64, words: &str) {
        let _ = writeln!(
            self.body,
            r#"<circle class="{class}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>"#,
            px(x),
            px(y),
            px(r),
            escape(words)
        );
    }

    pub(super) fn text(
        &mut self,
        class: &str,
        anchor: Anchor,
        (x, y): (f64, f64),
        size: f64,
        words: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let _ = writeln!(
            self.body,
            r#"<text class="{class}"{anchor} font-size="{size}" x="{}" y="{}">{}</text>"#,
            px(x),
            px(y),
            escape(words)
        );
    }

    /// An image of pixels.
    pub(super) fn image(&mut self, [x, y, w, h]: [f64; 4], png: &[u8], words: &str) {
        let _ = writeln!(
            self.body,
            r#"<image class="px" x="{}" y="{}" width="{}" height="{}" preserveAspectRatio="none" href="data:image/png;base64,{}"><title>{}</title></image>"#,
            px(x),
            px(y),
            px(w),
            px(h),
            BASE64_STANDARD.encode(png),
            escape(words)
        );
    }

    /// The plot as a standalone file.
    pub(super) fn finish(self) -> String {
        let style = format!("<style>{STYLE}</style>\n");
        self.write(&style, r#"<rect class="bg" width="100%" height="100%"/>"#)
    }

    /// The plot as a part of a page with the style sheet.
    pub(super) fn inline(self) -> String {
        self.write("", "")
    }

    fn write(self, style: &str, ground: &str) -> String {
        let (w, h, title) = (px(self.width), px(self.height), escape(&self.title));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"bn\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n\
             {style}{ground}\n{}</svg>\n",
            self.body
        )
    }
}
