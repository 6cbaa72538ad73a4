//! Connected groups of layers with the same dependence, and which of them can be outlined.

use super::layout::{Layout, Place};
use crate::circuit::Circuit;
use crate::query::Dependence;

/// A group of layers, and its bounding box.
pub(super) struct Group {
    pub(super) dependence: Dependence,
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
    num_layers: usize,
}

const MAX_OUTLINES: usize = 24;

impl Group {
    fn include(&mut self, place: &Place) {
        self.left = self.left.min(place.left());
        self.top = self.top.min(place.top());
        self.right = self.right.max(place.right());
        self.bottom = self.bottom.max(place.bottom());
        self.num_layers += 1;
    }

    fn contains(&self, place: &Place) -> bool {
        place.left() < self.right
            && place.right() > self.left
            && place.top() < self.bottom
            && place.bottom() > self.top
    }
}

/// The groups whose bounding box contains no layer of another group, if there are few enough to be helpful.
pub(super) fn outlines(
    circuit: &Circuit,
    layout: &Layout,
    dependences: &[Dependence],
) -> Vec<Group> {
    if layout.num_lines > 1 {
        return Vec::new();
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of = vec![0; circuit.num_layers()];
    for id in circuit.layer_ids().rev() {
        let dependence = dependences[id.index()];
        let consumer = circuit.consumer(id).filter(|c| dependences[c.index()] == dependence);
        group_of[id.index()] = consumer.map_or(groups.len(), |c| group_of[c.index()]);
        let place = layout.place(id);
        if consumer.is_none() {
            let (left, top) = (place.left(), place.top());
            let (right, bottom) = (place.right(), place.bottom());
            groups.push(Group { dependence, left, top, right, bottom, num_layers: 0 });
        }
        groups[group_of[id.index()]].include(place);
    }
    let least = |g: &Group| if g.dependence == Dependence::Mixed { 2 } else { 3 };
    let candidates = groups.iter().filter(|g| g.num_layers >= least(g)).count();
    if candidates > MAX_OUTLINES {
        return Vec::new();
    }
    let mut clear = vec![true; groups.len()];
    for (n, group) in groups.iter().enumerate() {
        clear[n] = group.num_layers >= least(group)
            && circuit
                .layer_ids()
                .all(|id| group_of[id.index()] == n || !group.contains(layout.place(id)));
    }
    groups.into_iter().zip(clear).filter_map(|(g, clear)| clear.then_some(g)).collect()
}
