//! The pages of the documentation, carried out literally: what a page tells its reader to type works.

mod new_user;
mod page;
mod readme;
mod scenes;
mod shown;
mod tutorial;
