//! The engine as a whole, on a simulated disk, with simulated time and scripted steps.

mod crashes;
mod running;
mod world;
