"""What sync and async have in common, without input or output: requests, answers, decisions."""
