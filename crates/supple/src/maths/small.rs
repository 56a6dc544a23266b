//! Small vectors over lanes.
