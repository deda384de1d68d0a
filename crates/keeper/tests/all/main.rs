//! Parts of the keeper, on real interpreters.

mod node_carry;
