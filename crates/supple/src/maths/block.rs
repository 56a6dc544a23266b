//! Own straight-line blocks.
