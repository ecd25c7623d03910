// Intentionally empty: this package only pins sources (see Cargo.toml).
