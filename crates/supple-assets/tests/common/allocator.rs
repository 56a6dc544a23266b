//! Counts the memory in use, and the most there was.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static TOTAL: Cell<usize> = const { Cell::new(0) };
}

fn add(bytes: isize) {
    let _ = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        let _ = TOTAL.try_with(|total| total.set(total.get() + layout.size()));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// From here on the peak of this thread is counted.
pub(crate) fn reset() {
    NOW.with(|now| now.set(0));
    PEAK.with(|peak| peak.set(0));
    TOTAL.with(|total| total.set(0));
}

/// All that this thread has asked for since the last reset, given back or not \[bytes\]: a measure of work that does not depend on the machine.
#[allow(dead_code)] // each user has its own copy of this module
pub(crate) fn total() -> usize {
    TOTAL.with(Cell::get)
}

/// The most this thread had in use since the last reset \[bytes\].
pub(crate) fn peak() -> usize {
    PEAK.with(|peak| peak.get().max(0) as usize)
}
